package ken_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/google/jsonschema-go/jsonschema"

	"ken/internal/yamldoc"
)

func parseYAML(t *testing.T, name string, text []byte) *yamldoc.Map {
	t.Helper()
	m, err := yamldoc.Parse(text, yamldoc.Limits{Bytes: 1 << 20, Keys: 10_000, Depth: 32})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// asJSON returns a document of YAML as what JSON decodes to.
func asJSON(t *testing.T, name string, text []byte) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal(yamldoc.Value{Any: parseYAML(t, name, text)}.JSON(), &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// TestCompose: the file for Docker names what a cluster needs, and all its services have
// the same settings.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile("deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Aliases and merge keys are Docker's to read: they are refused elsewhere in Ken.
	text = regexp.MustCompile(`(?m)^(x-ken: )&ken$`).ReplaceAll(text, []byte("x-ken:"))
	text = regexp.MustCompile(`(?m)^ *<<: \*ken\n`).ReplaceAll(text, nil)
	services, _ := asJSON(t, "compose.yaml", text)["services"].(map[string]any)
	for _, want := range []string{"postgres", "migrate", "ken-1", "ken-2", "worker-1", "worker-2", "caddy"} {
		one, ok := services[want].(map[string]any)
		if !ok {
			t.Errorf("compose.yaml has no service %s", want)
			continue
		}
		if ken := want != "postgres" && want != "caddy"; ken != strings.Contains(fmt.Sprint(one["volumes"]), "./ken.yaml:/etc/ken/ken.yaml:ro") {
			t.Errorf("%s has the volumes %v", want, one["volumes"])
		}
	}
}

const chart = "deploy/helm/ken/"

// chartValues are the values that the chart is rendered with, besides its defaults.
var chartValues = map[string]map[string]any{
	"defaults": {},
	"all": {
		"image": "registry.example/ken:2", "replicas": 4, "workers": 3, "configSecret": "settings", "port": 80, "ingressFrom": "web",
		"postgresPort": 6432, "cpu": "2500m", "memory": "1Gi",
	},
	"no workers": {"workers": 0},
}

// values returns the chart's values with some changed, as JSON decodes them.
func values(t *testing.T, change map[string]any) (out map[string]any) {
	t.Helper()
	text, err := os.ReadFile(chart + "values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out = asJSON(t, "values.yaml", text)
	maps.Copy(out, change)
	if text, err = json.Marshal(out); err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestChart renders the Helm chart with the functions of Helm that it uses, and checks
// what comes of it. TestHelm does it with Helm itself.
func TestChart(t *testing.T) {
	text, err := os.ReadFile(chart + "values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var shape jsonschema.Schema
	if err := json.Unmarshal(text, &shape); err != nil {
		t.Fatal(err)
	}
	checker, err := shape.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []map[string]any{{"replicas": 0}, {"port": 70000}, {"image": ""}, {"workers": -1}, {"replica": 3}, {"memory": 512}} {
		if err := checker.Validate(values(t, wrong)); err == nil {
			t.Errorf("the schema takes %v for values", wrong)
		}
	}
	files, err := filepath.Glob(chart + "templates/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("templates: %v", err)
	}
	for name, change := range chartValues {
		t.Run(name, func(t *testing.T) {
			with := values(t, change)
			if err := checker.Validate(with); err != nil {
				t.Errorf("the values do not fit their schema: %v", err)
			}
			var docs []map[string]any
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				quote := func(v any) string { b, _ := json.Marshal(v); return string(b) }
				page, err := template.New(file).Option("missingkey=error").Funcs(template.FuncMap{"quote": quote}).Parse(string(text))
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				if err := page.Execute(&out, map[string]any{"Values": with, "Release": map[string]any{"Name": "ken"}}); err != nil {
					t.Fatal(err)
				}
				if strings.TrimSpace(out.String()) != "" {
					docs = append(docs, asJSON(t, file, out.Bytes()))
				}
			}
			checkChart(t, docs, with)
		})
	}
}

// at returns what is at a path of names and numbers in a document, or nil.
func at(doc any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[part]
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil || n >= len(v) {
				return nil
			}
			doc = v[n]
		default:
			return nil
		}
	}
	return doc
}

// checkChart checks that nothing is missing that a cluster needs, and that the parts fit
// together.
func checkChart(t *testing.T, docs []map[string]any, with map[string]any) {
	t.Helper()
	by := map[string]map[string]any{}
	for _, doc := range docs {
		kind := fmt.Sprint(doc["kind"])
		if kind == "Deployment" {
			kind += " " + fmt.Sprint(at(doc, "metadata.labels.part"))
		}
		if by[kind] != nil {
			t.Errorf("the chart has two of %s", kind)
		}
		by[kind] = doc
	}
	want := []string{"Deployment serve", "Deployment worker", "Job", "NetworkPolicy", "PodDisruptionBudget", "Service"}
	if with["workers"] == 0.0 {
		want = slices.Delete(want, 1, 2)
	}
	if got := slices.Sorted(maps.Keys(by)); !slices.Equal(got, want) {
		t.Fatalf("the chart has %q, want %q", got, want)
	}
	same := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for kind, args := range map[string]string{"Deployment serve": "serve", "Deployment worker": "worker", "Job": "doctor"} {
		doc := by[kind]
		if doc == nil {
			continue
		}
		pod, ken := "spec.template.spec.", "spec.template.spec.containers.0."
		same(kind+": command", at(doc, ken+"args.0"), args)
		same(kind+": image", at(doc, ken+"image"), with["image"])
		same(kind+": memory", at(doc, ken+"resources.limits.memory"), with["memory"])
		same(kind+": processors", at(doc, ken+"resources.limits.cpu"), with["cpu"])
		same(kind+": secret", at(doc, pod+"volumes.0.secret.secretName"), with["configSecret"])
		same(kind+": runs as root", at(doc, pod+"securityContext.runAsNonRoot"), true)
		same(kind+": token of the cluster", at(doc, pod+"automountServiceAccountToken"), false)
		same(kind+": disk can be changed", at(doc, ken+"securityContext.readOnlyRootFilesystem"), true)
		same(kind+": label", at(doc, "spec.template.metadata.labels.app"), "ken")
		if kind != "Job" {
			same(kind+": selected pods", at(doc, "spec.selector.matchLabels"), at(doc, "spec.template.metadata.labels"))
		}
	}
	serve := by["Deployment serve"]
	same("replicas", at(serve, "spec.replicas"), with["replicas"])
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		same(probe, at(serve, "spec.template.spec.containers.0."+probe+".httpGet.path"), "/healthz")
		same(probe+" port", at(serve, "spec.template.spec.containers.0."+probe+".httpGet.port"), at(serve, "spec.template.spec.containers.0.ports.0.name"))
	}
	if worker := by["Deployment worker"]; worker != nil {
		same("workers", at(worker, "spec.replicas"), with["workers"])
	}
	labels := at(serve, "spec.template.metadata.labels")
	same("pods of the service", at(by["Service"], "spec.selector"), labels)
	same("port of the service", at(by["Service"], "spec.ports.0.port"), with["port"])
	same("target of the service", at(by["Service"], "spec.ports.0.targetPort"), at(serve, "spec.template.spec.containers.0.ports.0.name"))
	same("pods of the budget", at(by["PodDisruptionBudget"], "spec.selector.matchLabels"), labels)
	same("pods that may be down", at(by["PodDisruptionBudget"], "spec.maxUnavailable"), 1)
	hooks, _ := at(by["Job"], "metadata.annotations").(map[string]any)
	same("when the tables are updated", hooks["helm.sh/hook"], "pre-install,pre-upgrade")
	same("how the tables are updated", at(by["Job"], "spec.template.spec.containers.0.args"), "[doctor --cluster --migrate latest --config /etc/ken/ken.yaml]")
	policy := by["NetworkPolicy"]
	same("pods of the network policy", at(policy, "spec.podSelector.matchLabels"), "map[app:ken]")
	same("directions of the network policy", at(policy, "spec.policyTypes"), "[Ingress Egress]")
	same("port of PostgreSQL", at(policy, "spec.egress.0.ports.0.port"), with["postgresPort"])
	from := "map[podSelector:map[]]"
	if with["ingressFrom"] != "" {
		from = fmt.Sprintf("map[podSelector:map[matchLabels:map[app:%v]]]", with["ingressFrom"])
	}
	same("who reaches Ken", at(policy, "spec.ingress.0.from.0"), from)
}

// TestHelm checks the chart with Helm itself, if KEN_HELM names it: .ci/chart.sh, which
// is part of make nightly, builds it.
func TestHelm(t *testing.T) {
	helm := os.Getenv("KEN_HELM")
	if helm == "" {
		t.Skip("left for make nightly: .ci/chart.sh builds Helm and names it in KEN_HELM")
	}
	run := func(args ...string) ([]byte, error) { return exec.Command(helm, args...).CombinedOutput() }
	if out, err := run("lint", "--strict", chart); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
	if out, err := run("template", "ken", chart, "--set", "replicas=0"); err == nil || !strings.Contains(string(out), "replicas") {
		t.Errorf("helm takes no replicas for a value: %v\n%s", err, out)
	}
	for name, change := range chartValues {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(change)
			file := filepath.Join(t.TempDir(), "values.json")
			if err == nil {
				err = os.WriteFile(file, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			out, err := run("template", "ken", chart, "--values", file)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, out)
			}
			var docs []map[string]any
			for doc := range strings.SplitSeq(string(out), "---\n") {
				if strings.TrimSpace(doc) != "" {
					docs = append(docs, asJSON(t, "a document of helm template", []byte(doc)))
				}
			}
			checkChart(t, docs, values(t, change))
		})
	}
}
