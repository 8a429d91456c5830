package events

// Publication is a fact about a published artifact or package.
//
//sumtype:decl
type Publication interface{ isPublication() }

// PublicationRecorded says that an artifact or package exists.
type PublicationRecorded struct {
	Reference
	Build  string `json:"build,omitempty"`
	Commit string `json:"commit,omitempty"`
	Module string `json:"module,omitempty"`
}

// PublicationAttested adds a statement about it.
type PublicationAttested struct{ Attestation }

// PublicationVetoed says that it must not be assigned by itself any more.
type PublicationVetoed struct {
	Reason string `json:"reason"`
}

// PublicationVetoLifted takes a veto back.
type PublicationVetoLifted struct {
	Reason string `json:"reason,omitempty"`
}

func (PublicationRecorded) isPublication()   {}
func (PublicationAttested) isPublication()   {}
func (PublicationVetoed) isPublication()     {}
func (PublicationVetoLifted) isPublication() {}
