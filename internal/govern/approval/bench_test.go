package approval_test

import (
	"fmt"
	"testing"

	"ken/internal/govern/approval"
	"ken/internal/testkit/storetest"
)

func BenchmarkGrants(b *testing.B) {
	for _, n := range []int{0, 1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := newDesk(b, storetest.Open(b, storetest.Address(b)), approval.Config{})
			for i := range n {
				q := about(callOf(fmt.Sprintf(`{"n":%d}`, i)))
				q.Widest = approval.Once
				settle(b, d, ask(b, d, q).ID, yes(approval.Once))
			}
			q := requestOf(b, callOf(`{"n":0}`))
			b.ReportAllocs()
			for b.Loop() {
				if grants, err := d.Grants(ctx, q); err != nil || len(grants) != min(n, 1) {
					b.Fatal(len(grants), err)
				}
			}
		})
	}
}

// BenchmarkCourse is the whole life of a question: asked, granted, used.
func BenchmarkCourse(b *testing.B) {
	d := newDesk(b, storetest.Open(b, storetest.Address(b)), approval.Config{})
	for i := 0; b.Loop(); i++ {
		t := settle(b, d, ask(b, d, about(callOf(fmt.Sprintf(`{"n":%d}`, i)))).ID, yes(approval.Once))
		if _, err := d.Consume(ctx, t.Grant); err != nil {
			b.Fatal(err)
		}
	}
}
