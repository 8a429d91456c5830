package events

// Freeze is a fact about a freeze: a time in which nothing it selects is changed by a rollout.
//
//sumtype:decl
type Freeze interface{ isFreeze() }

// FreezeDeclared says that a freeze holds from now on.
type FreezeDeclared struct {
	Name     string   `json:"name"`
	Selector Selector `json:"selector"`
	Window   *Window  `json:"window,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

// FreezeLifted takes a freeze back.
type FreezeLifted struct {
	Reason string `json:"reason,omitempty"`
}

func (FreezeDeclared) isFreeze() {}
func (FreezeLifted) isFreeze()   {}
