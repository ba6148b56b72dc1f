package extension

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/pattern"
	"ken/internal/know/source/recipe"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Extension packages: a folder with a manifest.json, the commands of the
// package in commands.yaml or commands/commands.yaml, and usage documents that
// are read on demand. A package makes one capability for itself and one for each
// action and tool in it.

// Format returns the format of extension packages.
func Format() format.Format {
	return format.Format{
		Name: "extension", Markers: []string{format.ExtensionManifest}, Accepts: isExtension,
		Limit: safefs.TextLimit, Read: readExtension,
	}
}

const (
	usageLimit = 64 << 10
)

// commandFiles are the places of a package's commands; the first that is there
// is read.
func commandFiles() []string {
	return []string{"commands/commands.yaml", "commands/commands.yml", "commands.yaml", "commands.yml"}
}

// isExtension tells a package's manifest from that of a web page, which has
// the same name. One that does not parse counts when it shows our words, so
// that its author hears of it.
func isExtension(r *safefs.Root, dir string) bool {
	for _, name := range commandFiles() {
		if r.Exists(path.Join(dir, name)) {
			return true
		}
	}
	data, _, err := r.Read(path.Join(dir, format.ExtensionManifest), safefs.TextLimit)
	if err != nil {
		return false
	}
	m, err := yamldoc.Parse(data, yamldoc.Limits{})
	if err != nil {
		return bytes.Contains(data, []byte(`"permissions_required"`)) || bytes.Contains(data, []byte(`"permissionsRequired"`))
	}
	rd := yamldoc.NewReader(m)
	if f, _ := rd.Field("permissionsRequired"); f.Key != "" {
		return true
	}
	return slices.ContainsFunc(rd.Items("capabilities"), func(item *yamldoc.Reader) bool {
		kind := item.String("type")
		return kind == "slash_command" || kind == "tool"
	})
}

// An extension is a package while it is read.
type extension struct {
	*format.Unit
	id          capability.ID
	manifest    string // path of the manifest
	permissions []string
	platforms   []string
	category    string
	secrets     []string           // that its programs are given
	options     recipe.Options     // of the whole package
	claims      capability.Effects // what it says of all its actions
	usage       string
	declared    map[string]declaredCommand // what the manifest says of a command, by name
	wanted      map[string]bool            // permissions whose absence was mentioned
	files       func() (string, error)     // the digest of all files of the package
}

func readExtension(u *format.Unit) {
	data, p, err := u.File(format.ExtensionManifest, safefs.TextLimit)
	if err != nil {
		u.FaultErr("bad-manifest", p, 1, err)
		return
	}
	m, err := yamldoc.Parse(data, yamldoc.Limits{})
	if err != nil {
		u.FaultErr("bad-manifest", p, 1, err)
		return
	}
	x := &extension{Unit: u, manifest: p, declared: map[string]declaredCommand{}, wanted: map[string]bool{}}
	x.files = sync.OnceValues(x.digest)
	if x.describe(yamldoc.NewReader(m)) {
		x.commands()
	}
}

// describe reads the manifest: the package itself, and the tools in it.
func (x *extension) describe(r *yamldoc.Reader) bool {
	c := &capability.Capability{
		Kind: capability.KindExtension, Name: strings.TrimSpace(r.String("id")), DisplayName: strings.TrimSpace(r.String("name")),
		Description: r.String("description"), Category: r.String("category"), Tags: r.Words("tags"),
		Version: r.String("version"), RequiredBins: r.Words("externalBins"), RequiredSecrets: r.Words("requiredSecrets"),
		RequiredPlatforms: x.readPlatforms(r), Permissions: x.ReadPermissions(x.manifest, r),
	}
	if !x.name(c, r) {
		return false
	}
	x.secrets = c.RequiredSecrets
	x.id, x.permissions, x.platforms, x.category = c.ID, c.Permissions, c.RequiredPlatforms, c.Category
	x.options, x.claims = recipe.ReadOptions(r), readEffects(r)
	x.usage = x.readUsage(r)
	x.checkInstall(r)
	tools := x.readCapabilities(r)
	for _, key := range []string{"install", "docs"} {
		x.KeepField(c, r, key)
	}
	x.KeepRest(c, x.manifest, 1, r, true)
	x.WarnIssues("bad-value", x.manifest, 1, r)
	if c.Description == "" {
		x.Warn("no-description", x.manifest, 0, "the package has no description, so hardly anything finds it", "say in one sentence what it is for")
	}
	x.Add(c, capability.Detail{Usage: x.usage}, x.manifest, 1)
	for _, d := range tools {
		x.tool(d)
	}
	return true
}

// name settles what the package is called. Its name becomes that of a folder,
// and people copy it into commands, so it is held to what means nothing else in
// either.
func (x *extension) name(c *capability.Capability, r *yamldoc.Reader) bool {
	if c.Name == "" {
		c.Name, c.DisplayName = c.DisplayName, ""
	}
	if c.Name == "" {
		c.Name = path.Base(filepath.ToSlash(x.Root.Display(x.Path)))
		x.Warn("no-id", x.manifest, 1, fmt.Sprintf("the manifest has neither id nor name; the folder's name %q is used", c.Name), "add \"id\"")
	}
	if !extensionID().MatchString(c.Name) {
		x.Fault("bad-id", x.manifest, r.Line("id"), fmt.Sprintf("%q cannot name a package", c.Name),
			"give it an \"id\" of at most 128 letters, digits, dots, dashes and underscores that begins with a letter or digit, as in \"tools.postman\"")
		return false
	}
	c.ID = capability.MakeID(capability.KindExtension, c.Name)
	return true
}

// readPlatforms returns systems as Go names them; "any" restricts nothing.
func (x *extension) readPlatforms(r *yamldoc.Reader) []string {
	var out []string
	for _, given := range r.Words("platforms") {
		name := strings.ToLower(given)
		switch name {
		case "any", "all", "*":
			return nil
		case "macos", "osx", "mac":
			name = "darwin"
		case "win32", "win":
			name = "windows"
		case "linux", "darwin", "windows", "freebsd", "openbsd", "netbsd", "android", "ios":
		default:
			x.Warn("unknown-platform", x.manifest, r.Line("platforms"), fmt.Sprintf("no platform is called %q", given), "write linux, darwin or windows")
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// readUsage reads the usage document that the manifest names, or docs/USAGE.md.
// Only its hash and findings stay in memory.
func (x *extension) readUsage(r *yamldoc.Reader) string {
	given, named := x.usageName(r)
	data, _, err := x.File(given, usageLimit)
	if err != nil {
		if named || !isMissing(err) {
			problem := safefs.Problem(err, capability.Warning, x.Origin(x.manifest, r.Line("docs")))
			problem.Message = fmt.Sprintf("the usage document %s is not read: %s", given, problem.Message)
			x.Problems = append(x.Problems, problem)
		}
		return ""
	}
	return strings.TrimSpace(safefs.NormalizeNewlines(data))
}

// isMissing tells a file that is not there from one that may not be read.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (x *extension) usageName(r *yamldoc.Reader) (name string, named bool) {
	const usual = "docs/USAGE.md"
	f, ok := r.Field("docs")
	if !ok {
		return usual, false
	}
	switch docs := f.Value.Any.(type) {
	case string:
		if safefs.HasExt(docs, ".md", ".txt") && !strings.Contains(docs, "://") {
			return docs, true
		}
	case *yamldoc.Map:
		if s := yamldoc.NewReader(docs).String("usage"); s != "" {
			return s, true
		}
	}
	return usual, false
}

// checkInstall speaks up when the plan for installing lies outside the
// package. Nothing here ever follows the plan.
func (x *extension) checkInstall(r *yamldoc.Reader) {
	f, ok := r.Field("install")
	if !ok {
		return
	}
	plan, _ := f.Value.Any.(string)
	if m, isMap := f.Value.Any.(*yamldoc.Map); isMap {
		plan = yamldoc.NewReader(m).String("plan")
	}
	if !safefs.HasExt(plan, ".yaml", ".yml", ".json") {
		return
	}
	if _, err := safefs.Join(x.Path, plan); err != nil {
		x.Problems = append(x.Problems, safefs.Problem(err, capability.Warning, x.Origin(x.manifest, f.Line)))
	}
}

var (
	extensionID = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

	actionName = pattern.Lazy(`^[a-zA-Z][a-zA-Z0-9_-]*$`)
)
