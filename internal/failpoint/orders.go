package failpoint

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// Variables of the environment.
const (
	// EnvPoints holds [Orders], EnvPlanted the names of bugs with commas between them, EnvClock the path of the clock's file.
	EnvPoints  = "CATENARY_FAILPOINTS"
	EnvPlanted = "CATENARY_PLANTED"
	EnvClock   = "CATENARY_CLOCK_FILE"
)

// ErrInjected is what a point fails with.
var ErrInjected = errors.New("a fault was injected")

// Action is what a point does to the process that passes it.
type Action string

// The actions.
const (
	// Kill ends the process as SIGKILL does, Stop holds it as SIGSTOP does until it gets a SIGCONT.
	Kill Action = "kill"
	Stop Action = "stop"
	// Error lets the point fail. Delay lets it wait.
	Error Action = "error"
	Delay Action = "delay"
)

// Order says what a point is to do.
type Order struct {
	Name   Name
	Action Action
	// For is how long a delay lasts.
	For time.Duration
	// At is the passing that it happens at, from 1 on; zero means all of them.
	At int
}

// String gives an order as it stands in the environment.
func (o Order) String() string {
	text := string(o.Name) + "=" + string(o.Action)
	if o.Action == Delay {
		text += ":" + o.For.String()
	}
	if o.At > 0 {
		text += "@" + strconv.Itoa(o.At)
	}
	return text
}

// Orders are those of one process.
type Orders []Order

// String gives orders as they stand in the environment.
func (o Orders) String() string {
	text := make([]string, len(o))
	for i, one := range o {
		text[i] = one.String()
	}
	return strings.Join(text, ",")
}

// ParseOrders reads what stands in the environment. It gives errors that name what is not understood.
func ParseOrders(text string) (Orders, error) {
	var orders Orders
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		o, err := parseOrder(part)
		if err != nil {
			return nil, errors.Wrapf(err, "%s: %q", EnvPoints, part)
		}
		orders = append(orders, o)
	}
	return orders, nil
}

func parseOrder(text string) (Order, error) {
	name, what, found := strings.Cut(text, "=")
	p, ok := known(Name(name))
	switch {
	case !ok:
		return Order{}, errors.Newf("no point is called %q", name)
	case !found:
		return Order{}, errors.Newf("what %s is to do is missing, as in %[1]s=kill@3", name)
	}
	what, at, counted := strings.Cut(what, "@")
	o := Order{Name: p.Name}
	if counted {
		var err error
		if o.At, err = strconv.Atoi(at); err != nil || o.At < 1 {
			return Order{}, errors.Newf("%q is no number of a passing, which count from 1", at)
		}
	}
	action, span, timed := strings.Cut(what, ":")
	o.Action = Action(action)
	if timed != (o.Action == Delay) {
		return Order{}, errors.Newf("%q: a delay says how long, as in delay:50ms, and nothing else does", what)
	}
	switch o.Action {
	case Kill, Stop:
	case Error:
		if !p.Fails {
			return Order{}, errors.Newf("%s can't fail with an error", name)
		}
	case Delay:
		var err error
		if o.For, err = time.ParseDuration(span); err != nil || o.For <= 0 {
			return Order{}, errors.Newf("%q is no span of time", span)
		}
	default:
		return Order{}, errors.Newf("%q is none of %s, %s, %s and %s", action, Kill, Stop, Error, Delay)
	}
	return o, nil
}

// ParsePlanted reads the names of bugs.
func ParsePlanted(text string) ([]Bug, error) {
	var bugs []Bug
	for part := range strings.SplitSeq(text, ",") {
		bug := Bug(strings.TrimSpace(part))
		switch {
		case bug == "":
		case !slices.Contains(Bugs(), bug):
			return nil, errors.Newf("%s: no bug is called %q", EnvPlanted, bug)
		default:
			bugs = append(bugs, bug)
		}
	}
	return bugs, nil
}
