package testkit

import "reflect"

// Equal reports what is not as it should be.
func Equal[T any](t interface {
	Helper()
	Errorf(format string, args ...any)
}, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
