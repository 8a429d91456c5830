package commands_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
)

func ExampleClient_Send() {
	bus, err := newLocalBus() // programs use dispatch.NewClient(connection)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bus.stop()
	client := commands.NewClient(bus).Within(time.Minute)

	answer, err := client.Send(context.Background(), commands.RegisterNode{Node: "n1"}, dispatch.Options{})
	fmt.Println(answer.Status, answer.Aggregate, answer.Key, answer.Version, err)

	answer, err = client.Send(context.Background(), commands.RegisterNode{Node: "n1"}, dispatch.Options{})
	fmt.Println(answer.Status, err)
	// Output:
	// accepted node n1 1 <nil>
	// unchanged <nil>
}

func ExampleAsRefusal() {
	bus, err := newLocalBus()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bus.stop()
	client := commands.NewClient(bus)

	answer, err := client.Send(context.Background(), commands.RelabelNode{Node: "n1"}, dispatch.Options{})
	if err == nil {
		err = commands.AsRefusal(answer)
	}
	var refused *es.Refusal
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Code)
	}

	version := uint64(7)
	answer, err = client.Send(context.Background(), commands.RegisterNode{Node: "n1"}, dispatch.Options{Expected: &version})
	if err == nil {
		err = commands.AsRefusal(answer)
	}
	var conflict *commands.Conflict
	if errors.As(err, &conflict) {
		fmt.Println("decided on version", conflict.Expected, "but it is", conflict.Current)
	}
	// Output:
	// rejected no-such-node
	// decided on version 7 but it is 0
}

func ExampleClient_SendMany() {
	bus, err := newLocalBus()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bus.stop()
	client := commands.NewClient(bus).Within(time.Minute)

	list := func(yield func(commands.Sending) bool) {
		for _, node := range []string{"n1", "n2", "n3"} {
			if !yield(commands.Sending{Payload: commands.RegisterNode{Node: node}}) ||
				!yield(commands.Sending{Payload: commands.RelabelNode{Node: node, Labels: map[string]string{"zone": "a"}}}) {
				return
			}
		}
	}
	accepted := 0
	for outcome := range client.SendMany(context.Background(), list, 64) {
		if outcome.Err != nil {
			fmt.Println(outcome.Index, outcome.Err)
		} else if err := commands.AsRefusal(outcome.Answer); err != nil {
			fmt.Println(outcome.Index, err)
		} else {
			accepted++
		}
	}
	fmt.Println(accepted, "accepted")
	// Output:
	// 6 accepted
}

// A program that must not lose what it has to say, also while there is no bus, says it to an outbox.
func ExampleClient_outbox() {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bus, err := newLocalBus() // programs use dispatch.NewInboxClient(connection, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bus.stop()
	box, err := dispatch.OpenOutbox(dispatch.OutboxConfig{Dir: dir, Bus: bus})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := commands.NewClient(box)

	// It is on disk when Send returns.
	answer, err := client.Send(context.Background(), commands.RegisterNode{Node: "n1"}, dispatch.Options{})
	fmt.Println(answer.Status, err, "waiting:", box.Pending())

	// Elsewhere in the program, for as long as it lives:
	ctx, cancel := context.WithCancel(context.Background())
	sent := make(chan error, 1)
	go func() { sent <- box.Run(ctx) }()

	err = box.Flush(context.Background())
	fmt.Println(err, "waiting:", box.Pending())
	cancel()
	if err := errors.CombineErrors(<-sent, box.Close()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// stored <nil> waiting: 1
	// <nil> waiting: 0
}
