package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"time"
)

// imageUser runs Ken in the image; it is the number that others use for a user
// without rights.
const imageUser = 65532

// image writes the container image for every Linux platform into one file, an OCI
// image layout in a tar archive. There is nothing in it but Ken, the certificates
// of authorities, and a user.
func (r *release) image() error {
	roots, err := r.tool("roots", "./roots")
	if err != nil {
		return err
	}
	certificates, err := r.output(r.work, roots)
	if err != nil {
		return err
	}
	var blobs []file
	add := func(kind string, data []byte) object {
		digest := sha256.Sum256(data)
		name := hex.EncodeToString(digest[:])
		blobs = append(blobs, file{name: "blobs/sha256/" + name, mode: 0o644, data: data})
		return object{"mediaType": "application/vnd.oci.image." + kind + ".v1+json", "digest": "sha256:" + name, "size": len(data)}
	}
	addJSON := func(kind string, v any) (object, error) {
		data, err := indented(v)
		return add(kind, data), err
	}
	manifests := []object{}
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		var plain bytes.Buffer
		if err := writeTar(&plain, r.date, r.imageFiles(p, certificates)); err != nil {
			return err
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(plain.Bytes()); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		layer := add("layer", packed.Bytes())
		layer["mediaType"] = "application/vnd.oci.image.layer.v1.tar+gzip"
		config, err := addJSON("config", r.imageConfig(p, fmt.Sprintf("sha256:%x", sha256.Sum256(plain.Bytes()))))
		if err != nil {
			return err
		}
		manifest, err := addJSON("manifest", object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []object{layer}, "annotations": r.imageLabels()})
		if err != nil {
			return err
		}
		manifest["platform"] = object{"os": p.os, "architecture": p.arch}
		manifests = append(manifests, manifest)
	}
	if len(manifests) == 0 {
		r.say("image: left out, because no Linux platform is built")
		return nil
	}
	// The outer index names the image; the inner one is the image for all platforms.
	all, err := addJSON("index", object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests})
	if err != nil {
		return err
	}
	all["annotations"] = object{"org.opencontainers.image.ref.name": r.version}
	index, err := indented(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []object{all}})
	if err != nil {
		return err
	}
	files := append([]file{
		{name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}` + "\n")},
		{name: "index.json", mode: 0o644, data: index},
		{name: "blobs", mode: fs.ModeDir | 0o755},
		{name: "blobs/sha256", mode: fs.ModeDir | 0o755},
	}, blobs...)
	var b bytes.Buffer
	if err := writeTar(&b, r.date, files); err != nil {
		return err
	}
	return r.put("ken_"+r.version+"_image.tar", b.Bytes())
}

func (r *release) imageFiles(p platform, certificates string) []file {
	const dir = fs.ModeDir
	user := strconv.Itoa(imageUser)
	files := []file{
		{name: "etc", mode: dir | 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\nken:x:" + user + ":" + user + ":Ken:/var/lib/ken:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nken:x:" + user + ":\n")},
		{name: "etc/ssl", mode: dir | 0o755},
		{name: "etc/ssl/certs", mode: dir | 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: []byte(certificates)},
		{name: "tmp", mode: dir | fs.ModeSticky | 0o777},
		{name: "usr", mode: dir | 0o755},
		{name: "usr/bin", mode: dir | 0o755},
		{name: "usr/bin/ken", mode: 0o755, from: r.binaries[p]},
		{name: "usr/share", mode: dir | 0o755},
		{name: "usr/share/doc", mode: dir | 0o755},
		{name: "usr/share/doc/ken", mode: dir | 0o755},
	}
	for _, f := range r.shared {
		switch f.name {
		case "LICENSE", "LICENSES.txt", "NOTICE":
			files = append(files, below("usr/share/doc/ken", []file{f})...)
		}
	}
	return append(files,
		file{name: "var", mode: dir | 0o755},
		file{name: "var/lib", mode: dir | 0o755},
		file{name: "var/lib/ken", mode: dir | 0o700, owner: imageUser},
		file{name: "var/lib/ken/ken.yaml", mode: 0o600, owner: imageUser, data: packaged("image.yaml")},
		file{name: "workspace", mode: dir | 0o755, owner: imageUser},
	)
}

func (r *release) imageConfig(p platform, layer string) object {
	user := strconv.Itoa(imageUser)
	date := r.date.Format(time.RFC3339)
	return object{
		"created": date, "os": p.os, "architecture": p.arch,
		"config": object{
			"User": user + ":" + user, "Entrypoint": []string{"/usr/bin/ken"}, "Cmd": []string{"serve"}, "WorkingDir": "/workspace",
			"Env":          []string{"HOME=/var/lib/ken", "KEN_HOME=/var/lib/ken", "PATH=/usr/bin"},
			"ExposedPorts": object{"7777/tcp": object{}}, "Volumes": object{"/var/lib/ken": object{}}, "Labels": r.imageLabels(),
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{layer}},
		"history": []object{{"created": date, "created_by": "make release VERSION=" + r.version}},
	}
}

func (r *release) imageLabels() object {
	return object{
		"org.opencontainers.image.title": "Ken", "org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created": r.date.Format(time.RFC3339), "org.opencontainers.image.licenses": "Apache-2.0",
	}
}
