package runner

import (
	"context"

	"ken/capability"
	"ken/internal/govern/policy"
)

type contextKey uint8

const (
	keyKey contextKey = iota
	surfaceKey
)

// WithKey gives the calls made with the context the caller's own name for one
// call: see Config.Key.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey, key)
}

// KeyOf gives what WithKey was told, or "". It fits Config.Key.
func KeyOf(ctx context.Context, _ capability.Call) string {
	key, _ := ctx.Value(keyKey).(string)
	return key
}

// WithSurface says where the calls made with the context came in.
func WithSurface(ctx context.Context, s policy.Surface) context.Context {
	return context.WithValue(ctx, surfaceKey, s)
}

// SurfaceOf gives what WithSurface was told, or the zero Surface. It fits
// Config.Surface.
func SurfaceOf(ctx context.Context, _ capability.Call) policy.Surface {
	s, _ := ctx.Value(surfaceKey).(policy.Surface)
	return s
}
