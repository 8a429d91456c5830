package agent

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/agent/driver"
	"catenary/events"
)

func TestStreak(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		check events.Check
		tries string // + and -
		want  string // the verdict after each try: h, u or .
	}{
		{name: "the defaults", tries: "+---+", want: "hhhuh"},
		{name: "bad from the start", tries: "---", want: "..u"},
		{name: "more of both", check: events.Check{Successes: 2, Failures: 2}, tries: "+-++--+-+++", want: "...hhuuuuhh"},
		{name: "a try between begins anew", check: events.Check{Successes: 1, Failures: 2}, tries: "+-+-+--", want: "hhhhhhu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStreak(c.check)
			got := ""
			last := Verdict("")
			for _, try := range c.tries {
				if changed := s.take(try == '+'); changed != (s.verdict != last) {
					t.Errorf("after %q it says %t", got, changed)
				}
				last = s.verdict
				got += map[Verdict]string{"": ".", Healthy: "h", Unhealthy: "u"}[last]
			}
			if got != c.want {
				t.Errorf("%s gives %s, want %s", c.tries, got, c.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bad":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/moved":
			http.Redirect(w, r, "/bad", http.StatusFound)
		case "/silent":
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		check events.Check
		dir   string
		fails string
	}{
		{name: "a command", check: events.Check{Exec: []string{"/bin/sh", "-c", `test "$CATENARY_MODULE" = web`}}},
		{name: "a command in a directory", dir: t.TempDir(), check: events.Check{Exec: []string{"/bin/sh", "-c", `test "$(ls | wc -l)" -eq 0`}}},
		{name: "a command in a directory that is not there", dir: "/no/such/dir", check: events.Check{Exec: []string{"/bin/true"}}, fails: "/no/such/dir"},
		{name: "a command that fails", check: events.Check{Exec: []string{"/bin/sh", "-c", "echo no luck; exit 1"}}, fails: "no luck"},
		{name: "a command that hangs", check: events.Check{Exec: []string{"/bin/sleep", "1000"}, Interval: "50ms"}, fails: "in time"},
		{name: "an address", check: events.Check{TCP: listener.Addr().String()}},
		{name: "an address where nobody is", check: events.Check{TCP: nobody}, fails: nobody},
		{name: "a URL", check: events.Check{HTTP: server.URL}},
		{name: "a URL that says no", check: events.Check{HTTP: server.URL + "/bad"}, fails: "503"},
		{name: "a URL that leads elsewhere, where nobody follows", check: events.Check{HTTP: server.URL + "/moved"}},
		{name: "a URL that says nothing", check: events.Check{HTTP: server.URL + "/silent", Interval: "50ms"}, fails: server.URL + "/silent: no answer within 2s"},
		{name: "a URL where nobody is", check: events.Check{HTTP: "http://" + nobody}, fails: nobody},
		{name: "nothing", fails: "neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := check(t.Context(), c.check, driver.Task{Module: "web"}, c.dir)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got error %v, want %q", err, c.fails)
			}
		})
	}
}

// TestWatchHealth tells each change of the verdict and nothing else, until it is ended.
func TestWatchHealth(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	flag := t.TempDir() + "/well"
	i := standing("web", 7, "1")
	i.Delivery = &events.Delivery{Check: &events.Check{Exec: []string{"/bin/sh", "-c", `if test -e "` + flag + `"; then exit 1; else : >"` + flag + `"; fi`}, Interval: "10ms", Failures: 2}}
	var told []judged
	watchHealth(ctx, "n1", "", Applied{Instruction: i}, func(j judged) {
		j.reason = ""
		if told = append(told, j); len(told) == 2 {
			cancel()
		}
	})
	want := []judged{{module: "web", source: 7, verdict: Healthy}, {module: "web", source: 7, verdict: Unhealthy}}
	if diff := cmp.Diff(want, told, cmp.AllowUnexported(judged{})); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
