package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/bcrypt"
	"gopkg.in/yaml.v3"

	"catenary/embedded"
	"catenary/es"
	"catenary/internal/topology"
)

const configureHelp = `Configure writes what a chain in separate processes needs: a configuration for its server with Catenary's two accounts, the settings
of the writer and the projector, and the credentials of everybody.

With three or five --member it writes one for each server of a cluster, in which every stream is on all of them. Each is given with the address at which clients,
and the other servers, reach it; servers reach one another at the port that is 2000 higher, or at the one behind the comma. What they say to one another is
protected by a secret and not encrypted: keep it in a network of their own, or add a tls block.

Keys and passwords that are there are kept, so it can be run again to add a person or an agent; then have each server read its
configuration again (SIGHUP). Everybody's credentials are read by their owner alone: hand each person and each
node its own file, and nobody but the writer and the projector those of the ledger and the mirrors.`

// defaultConfiguredBytes is what a server may store unless it is told: enough for some ten million events.
const defaultConfiguredBytes = 16 << 30

// configuration is what is to be written.
type configuration struct {
	dir, listen, store, durability string
	storeBytes                     int64
	people, agents                 []string
	members                        []string
}

func (a *app) configureCommand() *cobra.Command {
	var c configuration
	cmd := &cobra.Command{
		Use: "configure DIR", Short: "Write the configuration of a chain in separate processes", Long: configureHelp, GroupID: groupRun, Args: takes("DIR"),
		Example: "  catenary configure deploy --person ann --agent edge-1\n  catenary server --config deploy/nats-server.conf\n" +
			"  catenary configure deploy --member s1=10.0.0.1:4222 --member s2=10.0.0.2:4222 --member s3=10.0.0.3:4222",
	}
	flags := cmd.Flags()
	flags.StringVar(&c.listen, "listen", "127.0.0.1:4222", "`HOST:PORT` of the server for clients")
	flags.StringArrayVar(&c.members, "member", nil, "`NAME=HOST:PORT[,ROUTEPORT]` of one server of a cluster; given three or five times")
	cmd.MarkFlagsMutuallyExclusive("listen", "member")
	flags.StringVar(&c.store, "store", "", "the `directory` in which the server keeps everything (default data in DIR); each of a cluster in one of its name below")
	flags.Int64Var(&c.storeBytes, "store-bytes", defaultConfiguredBytes, "how many `bytes` it may store there; less than the disk has free")
	flags.StringVar(&c.durability, "durability", string(embedded.DurabilityFsync), "when an event counts as stored: fsync (it survives a power loss) or interval (faster; a power loss may take two minutes)")
	flags.StringArrayVar(&c.people, "person", nil, "`name` of a person or tool that may connect; may be given several times")
	flags.StringArrayVar(&c.agents, "agent", nil, "`node` whose agent may connect; it hears what its own node is told, and of no other; may be given several times")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := notEmpty(map[string]string{"listen": c.listen}); err != nil {
			return err
		}
		c.dir = args[0]
		files, err := c.write()
		if err != nil {
			return err
		}
		for _, f := range files {
			if _, err := fmt.Fprintln(a.Stdout, f); err != nil {
				return errors.Wrap(err, "write the output")
			}
		}
		return nil
	}
	return cmd
}

// settingsFile is what the writer and the projector read.
type settingsFile struct {
	Server          string `yaml:"server"`
	NKey            string `yaml:"nkey"`
	MirrorsNKey     string `yaml:"mirrors-nkey"`
	Durability      string `yaml:"durability"`
	Replicas        int    `yaml:"replicas"`
	EventStoreBytes int64  `yaml:"event-store-bytes"`
	BucketBytes     int64  `yaml:"bucket-bytes"`
}

// write writes all files and gives their paths.
func (c configuration) write() ([]string, error) {
	if c.durability != string(embedded.DurabilityFsync) && c.durability != string(embedded.DurabilityInterval) {
		return nil, usagef("--durability is %q: it is fsync or interval", c.durability)
	}
	servers, err := c.servers()
	if err != nil {
		return nil, err
	}
	limits, err := topology.Fit(c.storeBytes, topology.Options{})
	if err != nil {
		return nil, errors.Mark(err, errUsage)
	}
	dir, store, err := c.directories()
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, m := range servers {
		urls = append(urls, m.url)
	}
	d := deployment{
		dir: dir, store: store, servers: servers, texts: map[string][]byte{},
		layout: topology.Layout{MaxStoreBytes: c.storeBytes, SyncAlways: c.durability == string(embedded.DurabilityFsync)},
		settings: settingsFile{
			Server: strings.Join(urls, ","), NKey: filepath.Join(dir, "ledger.nk"), MirrorsNKey: filepath.Join(dir, "mirrors.nk"), Durability: c.durability,
			Replicas: topology.ReplicasOf(len(servers)), EventStoreBytes: limits.EventStoreBytes, BucketBytes: limits.BucketBytes,
		},
	}
	for _, add := range []func() error{
		d.addKeys,
		func() error { return d.addUsers(c.people, c.agents) },
		d.addServers,
		d.addSettings,
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	for _, path := range d.files {
		if err := os.WriteFile(path, d.texts[path], 0o600); err != nil {
			return nil, errors.Wrap(err, "write the configuration")
		}
	}
	return append(d.files, d.credentials...), nil
}

// directories gives the one to write into, which it makes, and the one of the store.
func (c configuration) directories() (dir, store string, err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", "", errors.Wrap(err, "make the directory")
	}
	if dir, err = filepath.Abs(c.dir); err != nil {
		return "", "", errors.Wrap(err, "directory of the configuration")
	}
	if c.store == "" {
		return dir, filepath.Join(dir, "data"), nil
	}
	store, err = filepath.Abs(c.store)
	return dir, store, errors.Wrap(err, "directory of the store")
}

// deployment is what is written for the servers, the processes and the users of a chain.
type deployment struct {
	dir, store string
	servers    []configuredServer
	layout     topology.Layout
	settings   settingsFile
	// files are written last, with their texts. Credentials are the files of keys, passwords and secrets: one that is there is kept.
	files       []string
	texts       map[string][]byte
	credentials []string
}

func (d *deployment) addFile(name string, text []byte) {
	path := filepath.Join(d.dir, name)
	d.files, d.texts[path] = append(d.files, path), text
}

// addKeys lets in the writer and the projector.
func (d *deployment) addKeys() (err error) {
	d.credentials = append(d.credentials, d.settings.NKey, d.settings.MirrorsNKey)
	if d.layout.Ledger.NKey, err = ownKey(d.settings.NKey); err != nil {
		return err
	}
	d.layout.Mirrors.NKey, err = ownKey(d.settings.MirrorsNKey)
	return err
}

// addUsers lets in the operator, people and agents.
func (d *deployment) addUsers(people, agents []string) error {
	for _, name := range append([]string{topology.UserOperator}, people...) {
		if es.Key(name) != name {
			return usagef("--person is %q: give a name of letters, digits, _ and -", name)
		}
		if err := d.addUser(name, ""); err != nil {
			return err
		}
	}
	for _, node := range agents {
		if err := es.CheckName("node", node); err != nil {
			return err
		}
		if err := d.addUser(topology.AgentUser(es.Key(node)), es.Key(node)); err != nil {
			return err
		}
	}
	return nil
}

func (d *deployment) addUser(name, node string) error {
	path := filepath.Join(d.dir, name+".env")
	u, err := userOf(path, d.settings.Server, name, node)
	d.layout.People, d.credentials = append(d.layout.People, u), append(d.credentials, path)
	return err
}

// addServers adds the configuration of each server.
func (d *deployment) addServers() (err error) {
	secret := filepath.Join(d.dir, "cluster.secret")
	for _, m := range d.servers {
		own, file := d.layout, "nats-server.conf"
		own.ServerName, own.Listen, own.StoreDir = m.name, m.listen, d.store
		if m.route != "" {
			file = "nats-server." + m.name + ".conf"
			own.StoreDir = filepath.Join(d.store, m.name)
			if own.Cluster, err = clusterOf(d.servers, m, secret); err != nil {
				return err
			}
		}
		text, err := own.Config()
		if err != nil {
			return errors.Mark(err, errUsage)
		}
		d.addFile(file, []byte(text))
	}
	if len(d.servers) > 1 {
		d.credentials = append(d.credentials, secret)
	}
	return nil
}

// addSettings adds what the writer and the projector read.
func (d *deployment) addSettings() error {
	text, err := yaml.Marshal(d.settings)
	d.addFile("catenary.yaml", text)
	return errors.Wrap(err, "settings")
}

// configuredServer is one server that is to be configured.
type configuredServer struct {
	name, listen, url string
	// route is where the others of a cluster reach it; empty for one that stands alone.
	route string
}

// routeOffset is how much higher the port for servers is than the one for clients, as with the usual ports of nats-server.
const routeOffset = 2000

// servers reads which servers are to be configured.
func (c configuration) servers() ([]configuredServer, error) {
	if len(c.members) == 0 {
		host, port, err := net.SplitHostPort(c.listen)
		if err != nil {
			return nil, usagef("--listen is %q: it is HOST:PORT", c.listen)
		}
		if unspecified(host) {
			host = "127.0.0.1"
		}
		return []configuredServer{{name: "catenary", listen: c.listen, url: "nats://" + net.JoinHostPort(host, port)}}, nil
	}
	if !slices.Contains(topology.ClusterSizes()[1:], len(c.members)) {
		return nil, usagef("%d members: a cluster has three servers, which survive the loss of one, or five, which survive that of two; an even number survives no more than one less does", len(c.members))
	}
	var all []configuredServer
	seen := map[string]bool{}
	for _, text := range c.members {
		m, err := readMember(text)
		if err != nil {
			return nil, err
		}
		for _, once := range []string{m.name, m.listen, m.route} {
			if seen[once] {
				return nil, usagef("--member %s: %s is given to two servers, or for clients and servers alike", text, once)
			}
			seen[once] = true
		}
		all = append(all, m)
	}
	return all, nil
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// readMember reads NAME=HOST:PORT[,ROUTEPORT].
func readMember(text string) (configuredServer, error) {
	wrong := func(why string) (configuredServer, error) {
		return configuredServer{}, usagef("--member is %q: %s", text, why)
	}
	name, where, _ := strings.Cut(text, "=")
	address, routePort, given := strings.Cut(where, ",")
	host, portText, err := net.SplitHostPort(address)
	port, portErr := strconv.ParseUint(portText, 10, 16)
	switch {
	case name == "" || es.Key(name) != name:
		return wrong("its name is of letters, digits, _ and -")
	case err != nil || portErr != nil || port == 0:
		return wrong("it is NAME=HOST:PORT, such as s1=10.0.0.1:4222, and a comma with the port for servers where that is not 2000 higher")
	case unspecified(host):
		return wrong("name the host at which clients and the other servers reach it")
	}
	route := port + routeOffset
	if given {
		if route, err = strconv.ParseUint(routePort, 10, 16); err != nil || route == 0 {
			return wrong("behind the comma comes the port for servers")
		}
	} else if route > math.MaxUint16 {
		return wrong("there is no port that is 2000 higher; give the one for servers behind a comma")
	}
	return configuredServer{name: name, listen: address, url: "nats://" + address, route: net.JoinHostPort(host, strconv.FormatUint(route, 10))}, nil
}

// clusterName is the same for all servers of a chain.
const clusterName = "catenary"

// clusterOf gives the place of one server among all.
func clusterOf(servers []configuredServer, m configuredServer, secretPath string) (*topology.ClusterLayout, error) {
	secret, err := os.ReadFile(secretPath)
	if errors.Is(err, fs.ErrNotExist) {
		secret = []byte(rand.Text())
		err = os.WriteFile(secretPath, secret, 0o600)
	}
	if err != nil {
		return nil, errors.Wrap(err, "secret of the cluster")
	}
	l := &topology.ClusterLayout{Name: clusterName, Listen: m.route, Secret: strings.TrimSpace(string(secret))}
	if l.Secret == "" {
		return nil, errors.Newf("secret of the cluster: %s is empty: remove it to have a new one made", secretPath)
	}
	for _, other := range servers {
		l.Routes = append(l.Routes, other.route)
	}
	return l, nil
}

// ownKey gives the public key of the seed in a file, which is made when it is not there.
func ownKey(path string) (public string, err error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		pair, makeErr := nkeys.CreateUser()
		if makeErr != nil {
			return "", errors.Wrap(makeErr, "make a key")
		}
		if seed, err = pair.Seed(); err == nil {
			err = os.WriteFile(path, seed, 0o600)
		}
	}
	if err != nil {
		return "", errors.Wrap(err, "key file")
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		return "", errors.Wrapf(err, "key file %s holds no seed: remove it to have a new one made", path)
	}
	public, err = pair.PublicKey()
	return public, errors.Wrapf(err, "key file %s", path)
}

const passwordLine = "NATS_PASSWORD="

// userOf gives the user whose credentials a file holds as environment variables. A password that is there is kept.
func userOf(path, url, name, node string) (topology.User, error) {
	password := ""
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return topology.User{}, errors.Wrap(err, "credentials")
	}
	for line := range strings.Lines(string(text)) {
		if found, ok := strings.CutPrefix(strings.TrimSpace(line), passwordLine); ok {
			password = found
		}
	}
	if password == "" {
		password = rand.Text()
	}
	content := fmt.Sprintf("NATS_URL=%s\nNATS_USER=%s\n%s%s\n", url, name, passwordLine, password)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return topology.User{}, errors.Wrap(err, "credentials")
	}
	// Nobody guesses 130 random bits, so the cheapest hash will do: connecting must not take longer for it.
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	return topology.User{Name: name, Password: string(hash), Node: node}, errors.Wrapf(err, "password in %s", path)
}
