package chain_test

import (
	"context"
	"fmt"
	"time"

	"catenary/chain"
	"catenary/events"
)

func version(v string) events.Reference {
	return events.Reference{Package: &events.Package{Name: "shop", Version: v}}
}

// exampleReader reads buckets that hold one assignment with two versions, and one that ended.
func exampleReader() *chain.Reader {
	b := newBuckets()
	put(b, chain.Assignments, 3, 0, chain.Assignment{Node: "n1", Module: "shop", Reference: version("1.20"), Assigned: hour(0), Since: hour(0)})
	put(b, chain.Assignments, 4, 0, chain.Assignment{Node: "n2", Module: "pay", Assigned: hour(0), Since: hour(0)})
	put(b, chain.Assignments, 5, 2, chain.Assignment{Node: "n1", Module: "shop", Reference: version("1.3"), Assigned: hour(0), Since: hour(2)})
	put(b, chain.Assignments, 6, 3, chain.Assignment{Node: "n2", Module: "pay", Assigned: hour(0), Since: hour(0), Ended: hour(3)})
	return b.reader()
}

func ExampleGet() {
	r := exampleReader()
	e, err := chain.Get(context.Background(), r, chain.Assignments, "n1", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Key, "runs", e.Value.Reference, "since", e.Value.Since.Format(time.Kitchen), "by event", e.Sequence)

	_, err = chain.Get(context.Background(), r, chain.Assignments, "n9", "shop")
	fmt.Println(err)
	// Output:
	// n1.shop runs shop@1.3 since 2:00PM by event 5
	// there is no assignment "n9" "shop" (key n9.shop)
}

func ExampleList() {
	r := exampleReader()
	for _, q := range []chain.Query{{}, {All: true}, {All: true, Limit: 1}} {
		page, err := chain.List(context.Background(), r, chain.Assignments, q)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range page.Entries {
			fmt.Print(e.Key, " ")
		}
		fmt.Printf("next %q\n", page.Cursor)
	}
	// Output:
	// n1.shop next ""
	// n1.shop n2.pay next ""
	// n1.shop next "n1.shop"
}

func ExampleHistory() {
	changes, err := chain.History(context.Background(), exampleReader(), chain.Assignments, "n1", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range changes {
		fmt.Println(c.Effective.Format(time.Kitchen), c.Value.Reference)
	}
	// Output:
	// 12:00PM shop@1.20
	// 2:00PM shop@1.3
}

func ExampleAsOf() {
	at := time.Date(2026, 5, 7, 13, 30, 0, 0, time.UTC)
	c, err := chain.AsOf(context.Background(), exampleReader(), chain.Assignments, at, "n1", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Value.Reference, c.Value.Stands())
	// Output: shop@1.20 true
}

func ExampleEncode() {
	data, err := chain.Encode(chain.Assignment{Node: "n1", Module: "shop", Provisioning: events.Raw(`{ "replicas": 3.0 }`)})
	fmt.Println(string(data), err)
	// Output: {"node":"n1","module":"shop","provisioning":{ "replicas": 3.0 }} <nil>
}
