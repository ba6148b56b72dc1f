package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A dependency is a module whose code is in a binary.
type dependency struct {
	path, version, sum string

	licences []string // as SPDX names them
	texts    []file   // its files about licences, by their names in the module
}

// dependencies returns the modules in a binary, and the Go distribution itself,
// each with its licences.
func (r *release) dependencies(program string) ([]dependency, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	dirs, err := r.moduleDirs()
	if err != nil {
		return nil, err
	}
	out := []dependency{{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, dependency{path: m.Path, version: m.Version, sum: m.Sum})
	}
	for i := range out {
		if err := out[i].readLicences(dirs[out[i].path]); err != nil {
			return nil, fmt.Errorf("module %s: %w", out[i].path, err)
		}
	}
	return out, nil
}

// moduleDirs returns the folders of all modules, and that of Go as std.
func (r *release) moduleDirs() (map[string]string, error) {
	list, err := r.output(r.source, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for line := range strings.Lines(list) {
		path, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		dirs[path] = dir
	}
	goroot, err := r.output(r.source, "go", "env", "GOROOT")
	dirs["std"] = strings.TrimSpace(goroot)
	return dirs, err
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)`)

func (d *dependency) readLicences(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range list {
		if !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		d.texts = append(d.texts, file{name: entry.Name(), data: data})
		if name := licenceOf(string(data)); name != "" && !slices.Contains(d.licences, name) {
			d.licences = append(d.licences, name)
		}
	}
	if len(d.licences) == 0 && dir != "" {
		return fmt.Errorf("no licence that may be distributed was recognised in %s: read it, and add it to licenceOf if it is MIT, BSD, Apache, ISC or MPL", dir)
	}
	return nil
}

// licenceOf recognises the licences that Ken's dependencies may have, by phrases
// that only they contain. It returns "" for others.
func licenceOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(phrase string) bool { return strings.Contains(text, phrase) }
	switch {
	case has("Apache License Version 2.0") || has("Apache License, Version 2.0"):
		return "Apache-2.0"
	case has("Mozilla Public License Version 2.0") || has("Mozilla Public License, version 2.0"):
		return "MPL-2.0"
	case has("Permission is hereby granted, free of charge, to any person obtaining a copy"):
		return "MIT"
	case has("Permission to use, copy, modify, and/or distribute") || has("Permission to use, copy, modify, and distribute this software for any purpose"):
		return "ISC"
	case has("Redistribution and use in source and binary forms") && (has("endorse or promote products") || has("used to endorse")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return ""
}

// licences returns the texts of the licences of everything that is in any of the
// binaries.
func (r *release) licences() ([]byte, error) {
	seen := map[string]dependency{}
	for _, p := range r.platforms {
		list, err := r.dependencies(r.binaries[p])
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			seen[d.path] = d
		}
	}
	all := make([]dependency, 0, len(seen))
	for _, d := range seen {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b dependency) int { return strings.Compare(a.path, b.path) })
	var b bytes.Buffer
	b.WriteString("Ken contains code of these modules, under these licences.\n")
	for _, d := range all {
		name := d.path
		if name == "std" {
			name = "Go and its standard library"
		}
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n", strings.Repeat("=", 80), name, d.version, strings.Join(d.licences, ", "))
		for _, t := range d.texts {
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", t.name, bytes.TrimSpace(t.data))
		}
	}
	return b.Bytes(), nil
}

// sboms writes, for each binary, what is in it, in the form of CycloneDX.
func (r *release) sboms() error {
	for _, p := range r.platforms {
		deps, err := r.dependencies(r.binaries[p])
		if err != nil {
			return err
		}
		digest, _, err := digestOf(r.binaries[p])
		if err != nil {
			return err
		}
		data, err := r.sbom(p, digest, deps)
		if err != nil {
			return err
		}
		_, folder := r.archiveName(p)
		if err := r.put(folder+".cdx.json", data); err != nil {
			return err
		}
	}
	return nil
}

type object = map[string]any

func (r *release) sbom(p platform, digest string, deps []dependency) ([]byte, error) {
	ref := "pkg:golang/" + r.module + "@v" + r.version
	var components []object
	var refs []string
	for _, d := range deps {
		purl := "pkg:golang/" + d.path + "@" + d.version
		var licences []object
		for _, name := range d.licences {
			licences = append(licences, object{"license": object{"id": name}})
		}
		c := object{"type": "library", "bom-ref": purl, "name": d.path, "version": d.version, "purl": purl, "licenses": licences}
		if d.sum != "" {
			c["properties"] = []object{{"name": "go:sum", "value": d.sum}}
		}
		components, refs = append(components, c), append(refs, purl)
	}
	// The serial number must be a UUID, and the same for the same content.
	id := sha256.Sum256([]byte(ref + " " + p.String() + " " + digest))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return indented(object{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"serialNumber": fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		"metadata": object{
			"timestamp": r.date.Format(time.RFC3339),
			"component": object{
				"type": "application", "bom-ref": ref, "name": "ken", "version": r.version, "purl": ref,
				"licenses":   []object{{"license": object{"id": "Apache-2.0"}}},
				"hashes":     []object{{"alg": "SHA-256", "content": digest}},
				"properties": []object{{"name": "go:platform", "value": p.String()}, {"name": "git:commit", "value": r.commit}},
			},
		},
		"components":   components,
		"dependencies": []object{{"ref": ref, "dependsOn": refs}},
	})
}

func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// provenanceName is the file that says how the others were made.
const provenanceName = "provenance.intoto.json"

// provenance writes an in-toto statement about every file so far, with a
// predicate of SLSA.
func (r *release) provenance() error {
	subjects := []object{}
	err := r.each(func(name, digest string) {
		subjects = append(subjects, object{"name": name, "digest": object{"sha256": digest}})
	})
	if err != nil {
		return err
	}
	platforms := []string{}
	for _, p := range r.platforms {
		platforms = append(platforms, p.String())
	}
	data, err := indented(object{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            "make-release/v1", // docs/releasing.md
				"externalParameters":   object{"version": r.version, "commit": r.commit, "platforms": platforms, "only": r.only, "npm": r.npmName, "url": r.url},
				"internalParameters":   object{"CGO_ENABLED": "0", "flags": "-trimpath -buildvcs=false -ldflags='-s -w -buildid= -X …'"},
				"resolvedDependencies": []object{{"name": "source", "digest": object{"gitCommit": r.commit}}, {"name": "go", "annotations": object{"version": runtime.Version()}}},
			},
			// The time is the commit's: the file is the same whenever it is made.
			"runDetails": object{"builder": object{"id": "scripts/release"}, "metadata": object{"invocationId": r.commit, "startedOn": r.date.Format(time.RFC3339)}},
		},
	})
	if err != nil {
		return err
	}
	return r.put(provenanceName, data)
}
