package reload

import (
	"errors"
	"slices"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/wholefile"
)

// readFiles reads the configuration and returns how its files looked before, so
// that a change made meanwhile is seen the next time. The files that the settings
// before named are among them: if one of those cannot be used, correcting it
// alone must be seen.
func readFiles(places dirs.Places, explicit string, before config.Config) (config.Config, []wholefile.Stamp, error) {
	stamps := stampAll(places, explicit, before)
	settings, err := config.Load(places, explicit)
	if err != nil {
		return settings, stamps, err
	}
	for _, s := range stampAll(places, explicit, settings) {
		if !contains(stamps, s.Path) {
			s.Recent = true // it was read before it was looked at
			stamps = append(stamps, s)
		}
	}
	return settings, stamps, nil
}

// stampAll looks at every file that can change what the configuration says, as
// settings name them.
func stampAll(places dirs.Places, explicit string, settings config.Config) []wholefile.Stamp {
	names := config.RuleFiles(places, explicit, settings)
	if path := settings.Experiment.Config; path != "" {
		names = append(names, path)
	}
	var out []wholefile.Stamp
	for _, path := range names {
		if !contains(out, path) {
			out = append(out, wholefile.StampOf(path))
		}
	}
	return out
}

func contains(stamps []wholefile.Stamp, path string) bool {
	return slices.ContainsFunc(stamps, func(s wholefile.Stamp) bool { return s.Path == path })
}

// filled returns the files that are not empty.
func filled(stamps []wholefile.Stamp) []string {
	var out []string
	for _, s := range stamps {
		if s.Info != nil && s.Info.Size() > 0 {
			out = append(out, s.Path)
		}
	}
	return out
}

// emptied returns an error for a file that was not empty and is now. Many
// programs leave a file empty for a moment while they write it, and its rules
// must not be gone in that moment.
func emptied(filled []string, stamps []wholefile.Stamp) error {
	for _, s := range stamps {
		if s.Info != nil && s.Info.Size() == 0 && slices.Contains(filled, s.Path) {
			return &capability.Error{Kind: capability.Invalid, Op: "read", Target: s.Path, Err: errors.New("the file is empty, but had content before"), Fix: "write the settings again, or remove the file"}
		}
	}
	return nil
}
