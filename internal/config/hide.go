package config

import (
	"slices"
	"strings"

	"ken/internal/secret/detect"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// shown returns the value of a setting as it may be shown to people: without the
// secrets that stand in it as plain text.
func shown(s setting[Config], c *Config) any { return withoutSecrets(s.name, s.show(c)) }

// withoutSecrets returns the value of a key without the secrets in the addresses
// and command lines that it defines. References such as ${secret:NAME} stay.
func withoutSecrets(key string, v any) any {
	if !slices.Contains([]string{serversKey, providersKey, "hooks", "catalog.sources", "discovery.embeddingUrl", "trace.otlp"}, WholeKey(key)) {
		return v
	}
	path := strings.Split(key, ".") // mcp.servers.NAME.env.VARIABLE
	return hideSecrets(len(path) > 3 && (path[3] == "env" || path[3] == "headers"), v)
}

// hideSecrets hides the secrets in all texts of a value. With whole, a text that
// refers to nothing is hidden as a whole, as in env and headers.
func hideSecrets(whole bool, v any) any {
	switch v := v.(type) {
	case string:
		return hideText(whole, "", v)
	case *yamldoc.Map:
		out := &yamldoc.Map{Line: v.Line}
		for _, f := range v.Fields {
			if !slices.Contains([]string{"sha256", "clientId", "key"}, f.Key) { // these look like secrets and are none
				f.Value.Any = hideSecrets(f.Key == "env" || f.Key == "headers" || whole, f.Value.Any)
			}
			out.Fields = append(out.Fields, f)
		}
		return out
	case []yamldoc.Value:
		out := slices.Clone(v)
		flag := ""
		for i := range out {
			text, ok := out[i].Any.(string)
			if !ok {
				out[i].Any, flag = hideSecrets(whole, out[i].Any), ""
				continue
			}
			out[i].Any = hideText(whole, flag, text)
			flag = ""
			if strings.HasPrefix(text, "-") && !strings.Contains(text, "=") {
				flag = strings.TrimLeft(text, "-") // the next argument is its value
			}
		}
		return out
	}
	return v
}

func hideText(whole bool, name, text string) string {
	switch {
	case whole && text != "" && !strings.Contains(text, "${"):
		return hidden
	case strings.HasPrefix(text, "${") && strings.HasSuffix(text, "}") || name != "" && strings.HasPrefix(text, "-"):
		name = ""
	}
	return detect.Replace(name, text, func(_, secret string) string {
		if strings.Contains(secret, "${") {
			return secret
		}
		return hidden
	})
}

// Shown returns a value that was typed for a key as it may be shown.
func Shown(key, value string) string {
	if key == storeKey {
		return withoutPassword(strings.Trim(value, `"'`))
	}
	v, err := yamldoc.ParseValue([]byte(value), limits())
	if err != nil {
		v.Any = value
	}
	before := yamledit.Flow(v.Any)
	if after := yamledit.Flow(withoutSecrets(key, v.Any)); after != before {
		return after
	}
	return value
}
