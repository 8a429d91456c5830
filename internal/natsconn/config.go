package natsconn

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
)

// DefaultServer is where the bus is when nothing says otherwise.
const DefaultServer = nats.DefaultURL

// DefaultTimeout bounds the first connection: longer than a round trip around the world, shorter than a person's patience.
const DefaultTimeout = 3 * time.Second

// ErrConfig is a configuration that can't work, such as an unknown context or unreadable credentials.
var ErrConfig = errors.New("bus: configuration is not valid")

// Config says where the bus is and who connects. The zero value finds the bus by the selected context, or at DefaultServer.
type Config struct {
	// Server is one URL, or several separated by commas.
	Server string
	// Context names a nats context, or is the absolute path of its file.
	Context string
	// Creds is the path of a credentials file, NKey that of a seed.
	Creds string
	NKey  string
	// User without Password is a token.
	User     string
	Password string
	// Cert, Key and CA are paths of PEM files for TLS.
	Cert, Key, CA string

	// Name is shown by the server for this connection.
	Name string
	// Timeout bounds the first connection. Default: DefaultTimeout.
	Timeout time.Duration
	// Logger hears of lost, restored and closed connections. Default: slog.Default().
	Logger *slog.Logger
}

// WithEnvironment fills empty settings from the environment's variables, read through getenv (os.Getenv). Who connects is one setting: where that is given,
// the environment does not say it again in another way.
func (c Config) WithEnvironment(getenv func(string) string) Config {
	identified := c.Creds != "" || c.NKey != "" || c.User != ""
	for _, v := range []struct {
		field    *string
		name     string
		identity bool
	}{
		{field: &c.Server, name: "NATS_URL"},
		{field: &c.Context, name: "NATS_CONTEXT"},
		{&c.Creds, "NATS_CREDS", true},
		{&c.NKey, "NATS_NKEY", true},
		{&c.User, "NATS_USER", true},
		{&c.Password, "NATS_PASSWORD", true},
		{field: &c.Cert, name: "NATS_CERT"},
		{field: &c.Key, name: "NATS_KEY"},
		{field: &c.CA, name: "NATS_CA"},
	} {
		if *v.field == "" && !(identified && v.identity) {
			*v.field = getenv(v.name)
		}
	}
	return c
}

// usesContext is true when a context may fill settings: a named one, or the selected one when nothing is given.
func (c Config) usesContext() bool {
	nothing := c.Server == "" && c.Creds == "" && c.NKey == "" && c.User == "" && c.Password == "" && c.Cert == "" && c.CA == ""
	return c.Context != "" || nothing
}

func (c Config) validate() error {
	switch {
	case c.Password != "" && c.User == "":
		return errors.Wrap(ErrConfig, "a password without a user; give both (NATS_USER, NATS_PASSWORD)")
	case (c.Cert == "") != (c.Key == ""):
		return errors.Wrap(ErrConfig, "a client certificate needs its key, and a key its certificate (NATS_CERT, NATS_KEY)")
	}
	given := 0
	for _, s := range []string{c.Creds, c.NKey, c.User} {
		if s != "" {
			given++
		}
	}
	if given > 1 {
		return errors.Wrap(ErrConfig, "more than one of credentials file, nkey and user is given; give one")
	}
	return nil
}

// credentials are the options for who connects. They replace what a context says about it as a whole.
func (c Config) credentials() ([]nats.Option, error) {
	var who nats.Option
	switch {
	case c.Creds != "":
		who = nats.UserCredentials(c.Creds)
	case c.NKey != "":
		o, err := nats.NkeyOptionFromSeed(c.NKey)
		if err != nil {
			return nil, errors.Mark(errors.Wrapf(err, "nkey seed %s", c.NKey), ErrConfig)
		}
		who = o
	case c.User != "" && c.Password == "":
		who = nats.Token(c.User)
	case c.User != "":
		who = nats.UserInfo(c.User, c.Password)
	}
	var options []nats.Option
	if who != nil {
		options = append(options, forgetCredentials, who)
	}
	if c.Cert != "" {
		options = append(options, nats.ClientCert(c.Cert, c.Key))
	}
	if c.CA != "" {
		options = append(options, nats.RootCAs(c.CA))
	}
	return options, nil
}

func forgetCredentials(o *nats.Options) error {
	o.User, o.Password, o.Token, o.Nkey = "", "", "", ""
	o.UserJWT, o.SignatureCB = nil, nil
	return nil
}
