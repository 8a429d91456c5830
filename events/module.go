package events

// Module is a fact about a module.
//
//sumtype:decl
type Module interface{ isModule() }

// ModuleSpec is all that is said of a module, always whole.
type ModuleSpec struct {
	Module string `json:"module"`
	// Repository is where its source lives, Seat that repository's logical name, Path the place within it.
	Repository string `json:"repository,omitempty"`
	Seat       string `json:"seat,omitempty"`
	Path       string `json:"path,omitempty"`
	Kind       string `json:"kind,omitempty"`
	// Requires names the modules that must stand on a node with this one.
	Requires []string          `json:"requires,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Delivery *Delivery         `json:"delivery,omitempty"`
}

// ModuleRegistered says that a module is known from now on, or again.
type ModuleRegistered struct{ ModuleSpec }

// ModuleChanged replaces all that is said of a module.
type ModuleChanged struct{ ModuleSpec }

// ModuleEnded says that a module was forgotten.
type ModuleEnded struct {
	Reason string `json:"reason,omitempty"`
}

func (ModuleRegistered) isModule() {}
func (ModuleChanged) isModule()    {}
func (ModuleEnded) isModule()      {}
