package detect

import (
	"regexp"
	"strings"
	"sync"
)

// A Form is how the secrets of one kind begin and go on. Every part of Ken that
// looks for secrets in text uses this list, so that none knows a form that another
// one misses.
type Form struct {
	What   string // the kind, with its article
	Words  string // apart by spaces: every secret of the form has one of them, in any case
	Prefix string // a regular expression for how it begins
	Tail   string // and for the rest
}

// Expression returns the regular expression that finds a form within text.
func (f Form) Expression() string { return f.Prefix + f.Tail }

// Forms has every form that is known.
var Forms = [...]Form{
	{"a private key", "private", `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`, `[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`},
	{"a private key", "private+key+", `PRIVATE\+KEY\+`, `[^\s"']+`},
	{"an age key", "age-secret-key", `AGE-SECRET-KEY-`, `[0-9A-Z-]+`},
	{"a JSON web token", "eyj", `\beyJ`, `[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?`},
	{"an AWS key", "akia asia aroa aida", `\b(?:AKIA|ASIA|AROA|AIDA)`, `[0-9A-Z]{16}\b`},
	{"a GitHub token", "gh", `\bgh[pousr]_`, `[A-Za-z0-9]{20,}`},
	{"a GitHub token", "github_pat_", `\bgithub_pat_`, `\w{20,}`},
	{"a GitLab token", "gl", `\bgl(?:pat|ptt|dt|rt|cbt|soat|ft)-`, `[\w-]{16,}`},
	{"a Slack token", "xox xapp", `\b(?:xox[abeoprs]-|xapp-)`, `[\w-]{8,}`},
	{"an API key", "sk- sk_ rk_ pk_", `\b(?:sk|rk|pk)[-_]`, `[A-Za-z0-9_-]{16,}`},
	{"an API key", "gsk_ xai- pplx- r8_", `\b(?:gsk_|xai-|pplx-|r8_)`, `[A-Za-z0-9_-]{20,}`},
	{"an API key", "tvly- fc- ctx7sk", `\b(?:tvly-|fc-|ctx7sk-)`, `[A-Za-z0-9_-]{20,}`},
	{"a webhook key", "whsec_", `\bwhsec_`, `[A-Za-z0-9+/=_-]{16,}`},
	{"a Google key", "aiza", `\bAIza`, `[\w-]{30,}`},
	{"a Google token", "ya29 1//0", `\b(?:ya29\.|1//0)`, `[\w-]{16,}`},
	{"a Google client secret", "gocspx", `\bGOCSPX-`, `[\w-]{16,}`},
	{"an npm token", "npm_", `\bnpm_`, `[A-Za-z0-9]{30,}`},
	{"a PyPI token", "pypi-", `\bpypi-`, `[\w-]{16,}`},
	{"a SendGrid key", "sg.", `\bSG\.`, `[\w-]{16,}\.[\w-]{16,}`},
	{"a Hugging Face token", "hf_", `\bhf_`, `[A-Za-z0-9]{20,}`},
	{"a DigitalOcean token", "dop_v1 doo_v1 dor_v1", `\bdo[opr]_v1_`, `[a-f0-9]{32,}`},
	{"a Shopify token", "shp", `\bshp(?:at|ca|pa|ss)_`, `[a-fA-F0-9]{24,}`},
	{"an API token", "lin_api_ ntn_ secret_", `\b(?:lin_api|ntn|secret)_`, `[A-Za-z0-9]{24,}`},
	{"an Atlassian token", "atatt3", `\bATATT3`, `[\w=-]{20,}`},
	{"a Figma token", "figd_", `\bfigd_`, `[\w-]{20,}`},
	{"a Supabase token", "sbp_", `\bsbp_`, `[a-f0-9]{32,}`},
	{"a Telegram token", ":aa", `\b\d{7,11}:AA`, `[\w-]{30,}`},
	{"a Vault token", "hvs. hvb.", `\bhv[sb]\.`, `[\w-]{20,}`},
	{"a Tailscale key", "tskey-", `\btskey-`, `[\w-]{12,}`},
	{"a Docker token", "dckr_pat_", `\bdckr_pat_`, `[\w-]{16,}`},
}

// prefixes matches a value that begins as a secret does.
var prefixes = sync.OnceValue(func() *regexp.Regexp {
	all := make([]string, len(Forms))
	for i, f := range Forms {
		all[i] = f.Prefix
	}
	return regexp.MustCompile(`^(?:` + strings.Join(all, "|") + `|-----BEGIN )`)
})
