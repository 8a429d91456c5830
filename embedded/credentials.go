package embedded

import (
	"crypto/rand"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/errors"
	"golang.org/x/crypto/bcrypt"

	"catenary/internal/topology"
)

const operatorFile = "operator.json"

// Credentials are what the operator of a server that listens beyond loopback connects with.
type Credentials struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// ReadCredentials reads the file that Server.CredentialsPath names.
func ReadCredentials(path string) (Credentials, error) {
	var c Credentials
	if err := readState(path, &c); err != nil {
		return Credentials{}, err
	}
	if c.User == "" || c.Password == "" {
		return Credentials{}, errors.Newf("%s has no user or no password; remove it and restart to get a new one", path)
	}
	return c, nil
}

// operatorCredentials reads the operator's credentials, or makes them once. It gives ErrStore.
func operatorCredentials(dir string) (Credentials, string, error) {
	path := filepath.Join(dir, operatorFile)
	c, err := ReadCredentials(path)
	if errors.Is(err, fs.ErrNotExist) {
		c = Credentials{User: topology.UserOperator, Password: rand.Text()}
		err = writeState(path, c)
	}
	if err != nil {
		return Credentials{}, "", errors.Mark(errors.Wrap(err, "operator's credentials"), ErrStore)
	}
	return c, path, nil
}

// hashed replaces a plain password by a hash for the server's configuration. The hash stays in this process, so the cheapest
// one will do: connecting must not take longer for it.
func hashed(u topology.User) (topology.User, error) {
	if u.Password == "" {
		return u, nil
	}
	if _, err := bcrypt.Cost([]byte(u.Password)); err == nil {
		return u, nil
	}
	h, err := bcrypt.GenerateFromPassword([]byte(u.Password), bcrypt.MinCost)
	if err != nil {
		return topology.User{}, errors.Mark(errors.Wrapf(err, "password of user %q", u.Name), ErrConfig)
	}
	u.Password = string(h)
	return u, nil
}
