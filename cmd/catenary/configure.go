package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
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

const configureHelp = `Configure writes what a chain in separate processes needs: a configuration for nats-server with Catenary's two accounts, the settings
of the writer and the projector, and the credentials of everybody.

Keys and passwords that are there are kept, so it can be run again to add a person or an agent; then have the server read its
configuration again (nats-server --signal reload). Everybody's credentials are read by their owner alone: hand each person and each
node its own file, and nobody but the writer and the projector those of the ledger and the mirrors.`

// defaultConfiguredBytes is what a server may store unless it is told: enough for some ten million events.
const defaultConfiguredBytes = 16 << 30

// configuration is what is to be written.
type configuration struct {
	dir, listen, store, durability string
	storeBytes                     int64
	people, agents                 []string
}

func (a *app) configureCommand() *cobra.Command {
	var c configuration
	cmd := &cobra.Command{
		Use: "configure DIR", Short: "Write the configuration of a chain in separate processes", Long: configureHelp, GroupID: groupRun, Args: takes("DIR"),
		Example: "  catenary configure deploy --person ann --agent edge-1\n  nats-server -c deploy/nats-server.conf",
	}
	flags := cmd.Flags()
	flags.StringVar(&c.listen, "listen", "127.0.0.1:4222", "`HOST:PORT` of the server for clients")
	flags.StringVar(&c.store, "store", "", "the `directory` in which the server keeps everything (default data in DIR)")
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
	EventStoreBytes int64  `yaml:"event-store-bytes"`
	BucketBytes     int64  `yaml:"bucket-bytes"`
}

// write writes all files and gives their paths.
func (c configuration) write() (files []string, err error) {
	if c.durability != string(embedded.DurabilityFsync) && c.durability != string(embedded.DurabilityInterval) {
		return nil, usagef("--durability is %q: it is fsync or interval", c.durability)
	}
	host, port, err := net.SplitHostPort(c.listen)
	if err != nil {
		return nil, usagef("--listen is %q: it is HOST:PORT", c.listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	url := "nats://" + net.JoinHostPort(host, port)
	limits, err := topology.Fit(c.storeBytes, topology.Options{})
	if err != nil {
		return nil, errors.Mark(err, errUsage)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, errors.Wrap(err, "make the directory")
	}
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return nil, errors.Wrap(err, "directory of the configuration")
	}
	store := filepath.Join(dir, "data")
	if c.store != "" {
		if store, err = filepath.Abs(c.store); err != nil {
			return nil, errors.Wrap(err, "directory of the store")
		}
	}
	layout := topology.Layout{
		ServerName: "catenary", Listen: c.listen, StoreDir: store, MaxStoreBytes: c.storeBytes, SyncAlways: c.durability == string(embedded.DurabilityFsync),
	}
	settings := settingsFile{
		Server: url, NKey: filepath.Join(dir, "ledger.nk"), MirrorsNKey: filepath.Join(dir, "mirrors.nk"), Durability: c.durability,
		EventStoreBytes: limits.EventStoreBytes, BucketBytes: limits.BucketBytes,
	}
	if layout.Ledger.NKey, err = ownKey(settings.NKey); err != nil {
		return nil, err
	}
	if layout.Mirrors.NKey, err = ownKey(settings.MirrorsNKey); err != nil {
		return nil, err
	}
	credentials := []string{settings.NKey, settings.MirrorsNKey}
	add := func(file, name, node string) error {
		path := filepath.Join(dir, file+".env")
		u, err := userOf(path, url, name, node)
		layout.People, credentials = append(layout.People, u), append(credentials, path)
		return err
	}
	for _, name := range append([]string{topology.UserOperator}, c.people...) {
		if es.Key(name) != name {
			return nil, usagef("--person is %q: give a name of letters, digits, _ and -", name)
		}
		if err := add(name, name, ""); err != nil {
			return nil, err
		}
	}
	for _, node := range c.agents {
		if err := es.CheckName("node", node); err != nil {
			return nil, err
		}
		name := topology.AgentUser(es.Key(node))
		if err := add(name, name, es.Key(node)); err != nil {
			return nil, err
		}
	}
	text, err := layout.Config()
	if err != nil {
		return nil, errors.Mark(err, errUsage)
	}
	yamlText, err := yaml.Marshal(settings)
	if err != nil {
		return nil, errors.Wrap(err, "settings")
	}
	files = []string{filepath.Join(dir, "nats-server.conf"), filepath.Join(dir, "catenary.yaml")}
	for i, content := range [][]byte{[]byte(text), yamlText} {
		if err := os.WriteFile(files[i], content, 0o600); err != nil {
			return nil, errors.Wrap(err, "write the configuration")
		}
	}
	return append(files, credentials...), nil
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
