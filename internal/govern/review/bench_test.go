package review_test

import (
	"fmt"
	"testing"

	"ken/capability"
	"ken/internal/govern/review"
	"ken/internal/testkit/storetest"
)

// world returns a desk and a book of n extensions, all of them on.
func world(b *testing.B, n int) (*review.Desk, *review.Book, *capability.Capability) {
	d := newDesk(b, storetest.Open(b, storetest.Address(b)), review.Config{})
	var all []*capability.Capability
	for i := range n {
		x, a := base()
		x.ID = capability.ID(fmt.Sprintf("extension:tools.number%d", i))
		x.Origin.Path = fmt.Sprintf("/home/somebody/.ken/extensions/number%d/manifest.json", i)
		a.ID = capability.ID(fmt.Sprintf("command:number%d/a", i))
		a.RequiredTools = []string{string(x.ID)}
		a.Origin.Path = fmt.Sprintf("/home/somebody/.ken/extensions/number%d/commands.yaml", i)
		all = append(all, x, a)
	}
	book := review.NewBook(all)
	for _, m := range book.Manifests() {
		if _, err := d.Enable(ctx, m, review.Shown{Digest: m.Digest}, yes("")); err != nil {
			b.Fatal(err)
		}
	}
	return d, book, all[len(all)-1]
}

// BenchmarkOff is the check for showing: no I/O.
func BenchmarkOff(b *testing.B) {
	d, book, c := world(b, 100)
	on := d.Switches(ctx, pia.Tenant)
	b.ReportAllocs()
	for b.Loop() {
		if why, _ := on.Off(book, c); why != "" {
			b.Fatal(why)
		}
	}
}

// BenchmarkCheck is the check before a call: one Get.
func BenchmarkCheck(b *testing.B) {
	d, book, c := world(b, 100)
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Check(ctx, pia.Tenant, book, c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewBook is what a change of the catalog costs, for 100 packages.
func BenchmarkNewBook(b *testing.B) {
	_, book, _ := world(b, 100)
	var all []*capability.Capability
	for _, m := range book.Manifests() {
		all = append(append(all, m.Package), m.Actions...)
	}
	for b.Loop() {
		review.NewBook(all)
	}
}
