package discover

import "sync"

// Keep returns what a function makes of the view. It is made once for each key,
// and kept as long as the view is: what it holds must depend on the view alone,
// and must not change. Keys are like those of a context, of a type of their
// own.
func (v *View) Keep(key any, make func() any) any {
	once, ok := v.kept.Load(key)
	if !ok {
		once, _ = v.kept.LoadOrStore(key, sync.OnceValue(make))
	}
	return once.(func() any)()
}
