package testkit

// A fataler is a *testing.T, a *testing.B or a property's test.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// OK ends the test at an error.
func OK(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns what a call returns, and ends the test at its error:
//
//	v := testkit.Must(call())(t)
func Must[T any](v T, err error) func(t fataler) T {
	return func(t fataler) T {
		t.Helper()
		OK(t, err)
		return v
	}
}
