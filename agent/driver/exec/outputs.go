package exec

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/errors"

	"catenary/agent/driver"
	"catenary/es"
)

// maxOutputsBytes bounds the file of outputs: more than can be handed on.
const maxOutputsBytes = 16 << 10

// outputs is the directory of the files in which commands leave what their modules hand on: one for each module, that of its last instruction.
// It outlives the process, so that an agent that was killed finds what a command had left.
type outputs string

// file is where the command for a task leaves its outputs. Names of modules may be longer than those of files.
func (o outputs) file(t driver.Task) string {
	return filepath.Join(string(o), es.Digest([]byte(t.Module))+"."+strconv.FormatUint(t.Source, 10))
}

// clear makes room for the outputs of a task, and removes what was left before. It gives errors of the file system.
func (o outputs) clear(t driver.Task) (string, error) {
	if err := o.forget(t); err != nil {
		return "", err
	}
	return o.file(t), errors.Wrap(os.MkdirAll(string(o), 0o700), "make room for outputs")
}

// forget removes what a task's module has left. It gives errors of the file system.
func (o outputs) forget(t driver.Task) error {
	left, err := filepath.Glob(filepath.Join(string(o), es.Digest([]byte(t.Module))+".*"))
	for _, file := range left {
		err = errors.CombineErrors(err, os.Remove(file))
	}
	return errors.Wrap(err, "remove former outputs")
}

// read gives what the command for a task has left; nil when it has left nothing. It gives errors for what is no NAME=VALUE lines, and those of
// the file system.
func (o outputs) read(t driver.Task) (map[string]string, error) {
	file, err := os.Open(o.file(t))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "read the outputs")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxOutputsBytes+1))
	err = errors.CombineErrors(err, file.Close())
	switch {
	case err != nil:
		return nil, errors.Wrap(err, "read the outputs")
	case len(text) > maxOutputsBytes:
		return nil, errors.Newf("the outputs have more than %d bytes", maxOutputsBytes)
	case !utf8.Valid(text):
		return nil, errors.New("the outputs are not valid UTF-8")
	}
	values := map[string]string{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		entry := strings.TrimRight(string(line), "\r\n")
		if entry == "" {
			continue
		}
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, errors.Newf("line %d of the outputs is not NAME=VALUE", n)
		}
		values[name] = value
	}
	if len(values) == 0 {
		return nil, nil
	}
	return values, nil
}
