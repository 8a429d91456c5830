package commands_test

import (
	"fmt"

	"catenary/commands"
)

func ExampleRegistry_Decode() {
	r := commands.Commands()

	p, err := r.Decode("assignment", "unassign", "", []byte(`{"node": "n1", "module": "web"}`))
	fmt.Println(p.Ref(), p.Verb(), err)

	_, err = r.Decode("assignment", "unassign", "", []byte(`{"node": "n1", "modul": "web"}`))
	fmt.Println(err)
	// Output:
	// assignment n1.web unassign <nil>
	// invalid (unknown-field): the body has no field "modul" — it knows node, module, reason
}
