package process

import (
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/run/executor"
)

// environment holds what the recipe names. A variable that speaks of a secret
// must be declared as one, so that a person sees it when reviewing.
func (e *Executor) environment(c *capability.Capability) ([]string, error) {
	names := slices.Clone(c.RequiredSecrets)
	for _, name := range c.Run.Env {
		if secretName(name) && !slices.Contains(c.RequiredSecrets, name) {
			return nil, fmt.Errorf("the name of variable %s looks like a secret, but required_secrets does not list it", name)
		}
		names = append(names, name)
	}
	env, refused := executor.Environment(e.programs.List(), names, e.cfg.Getenv)
	if len(refused) > 0 {
		return nil, fmt.Errorf("variable %s controls which code a program loads, so Ken never passes it on", refused[0])
	}
	for _, set := range c.Run.EnvValues {
		if err := maySet(env, set); err != nil {
			return nil, err
		}
		env = append(env, set)
	}
	return env, nil
}

// maySet refuses a value of the manifest's own where there is one already, and
// for variables that no manifest decides about.
func maySet(env []string, set string) error {
	name, value, ok := strings.Cut(set, "=")
	taken := name == "HOME" || slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	switch {
	case !ok || name == "" || strings.ContainsRune(set, 0):
		return fmt.Errorf("variable %.40q is not NAME=value", set)
	case executor.LoadsCode(name):
		return fmt.Errorf("variable %s controls which code a program loads, so Ken never sets it", name)
	case secretName(name) && value != "":
		return fmt.Errorf("the name of variable %s looks like a secret, and a manifest cannot contain secrets; list it in required_secrets", name)
	case taken:
		return fmt.Errorf("variable %s already has a value", name)
	}
	return nil
}

func secretName(name string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "COOKIE", "DSN"} {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return false
}
