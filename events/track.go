package events

// Track is a fact about a track: the only source of plans that nobody asked for by hand.
//
//sumtype:decl
type Track interface{ isTrack() }

// What makes a track plan.
const (
	OnMerge       = "merge"
	OnPublication = "publication"
	OnManual      = "manual"
)

// TrackSpec binds modules to a strategy.
type TrackSpec struct {
	Track   string   `json:"track"`
	Modules []string `json:"modules"`
	// Strategy is the name of a declared strategy.
	Strategy string `json:"strategy"`
	// On is one of the On constants.
	On string `json:"on"`
}

// TrackDeclared says that a track holds from now on.
type TrackDeclared struct{ TrackSpec }

// TrackChanged replaces all that is said of a track.
type TrackChanged struct{ TrackSpec }

// TrackEnded says that a track plans no more.
type TrackEnded struct {
	Reason string `json:"reason,omitempty"`
}

func (TrackDeclared) isTrack() {}
func (TrackChanged) isTrack()  {}
func (TrackEnded) isTrack()    {}
