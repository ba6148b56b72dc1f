// Package lists reads the small files that list things of one kind:
// channels.yaml, extensions.yaml and presets.yaml.
package lists
