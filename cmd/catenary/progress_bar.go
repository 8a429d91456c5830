package main

import (
	"fmt"
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// barStep is how many steps move the bar at once: the eye does not see single ones.
const barStep = 100

// progressBar shows how far something long is, such as an import, on a terminal only. It begins with the first step that is done.
type progressBar struct {
	app      *app
	on       bool
	progress *mpb.Progress
	bar      *mpb.Bar
	shown    int
}

func (a *app) newProgressBar() *progressBar {
	return &progressBar{app: a, on: isTerminal(a.Stderr) && a.Env("TERM") != "dumb"}
}

// show moves the bar.
func (b *progressBar) show(done, of int) {
	if !b.on {
		return
	}
	if b.progress == nil {
		b.progress = mpb.New(mpb.WithOutput(b.app.Stderr))
		b.bar = b.progress.AddBar(int64(of),
			mpb.PrependDecorators(decor.CountersNoUnit("%d of %d")),
			mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s"), decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8})),
		)
	}
	if done/barStep != b.shown/barStep || done == of {
		b.shown = done
		b.bar.SetCurrent(int64(done))
	}
}

// sayf writes a line of talk above the bar.
func (b *progressBar) sayf(format string, args ...any) {
	if b.progress == nil {
		b.app.sayf(format, args...)
		return
	}
	// Nothing can be done when even that fails.
	_, _ = io.WriteString(b.progress, fmt.Sprintf(format+"\n", args...))
}

// end leaves the bar as it stands.
func (b *progressBar) end() {
	if b.progress == nil {
		return
	}
	b.bar.Abort(false)
	b.progress.Wait()
	b.progress = nil
	b.on = false
}
