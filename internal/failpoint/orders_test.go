package failpoint

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseOrders(t *testing.T) {
	t.Parallel()
	want := Orders{
		{Name: WriterBeforeAppend, Action: Kill, At: 3}, {Name: BatonRenew, Action: Stop, At: 1}, {Name: StoreAnswerLost, Action: Error, At: 2},
		{Name: ProjectorBeforePut, Action: Delay, For: 50 * time.Millisecond}, {Name: ProjectorBeforePut, Action: Delay, For: time.Second, At: 7},
	}
	const text = "writer-before-append=kill@3,baton-renew=stop@1,store-answer-lost=error@2,projector-before-put=delay:50ms,projector-before-put=delay:1s@7"
	if want.String() != text {
		t.Errorf("written as %s", want)
	}
	got, err := ParseOrders(" " + strings.ReplaceAll(text, ",", " , ") + ",")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if none, err := ParseOrders(""); err != nil || none != nil {
		t.Errorf("nothing is read as %v, %v", none, err)
	}
}

func TestParseOrdersRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"somewhere=kill@1":               `no point is called "somewhere"`,
		"writer-before-append":           `as in writer-before-append=kill@3`,
		"baton-renew=kill@0":             "count from 1",
		"baton-renew=kill@x":             "count from 1",
		"baton-renew=error@1":            "can't fail",
		"baton-renew=leap@1":             `"leap" is none of`,
		"baton-renew=delay@1":            "says how long",
		"baton-renew=kill:5s@1":          "says how long",
		"baton-renew=delay:-1s":          "no span",
		"baton-renew=stop@1,x=kill":      `no point is called "x"`,
		"projector-before-put=delay:ten": "no span",
	} {
		if got, err := ParseOrders(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, %v; want %q", text, got, err, want)
		}
	}
}

func TestParsePlanted(t *testing.T) {
	t.Parallel()
	got, err := ParsePlanted("dedup-skipped, value-skipped")
	if diff := cmp.Diff([]Bug{DedupSkipped, ValueSkipped}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := ParsePlanted("moth"); err == nil {
		t.Error("a bug that nobody knows is taken")
	}
}
