package main

import (
	"strings"
	"testing"
)

// TestArguments checks that wrong arguments are refused before anything is made.
func TestArguments(t *testing.T) {
	t.Parallel()
	tests := []struct{ args, want string }{
		{"", "version"},
		{"-version 1.2", "not of the form"},
		{"-version v1.2.3", "not of the form"},
		{"-version 01.2.3", "not of the form"},
		{"-version 1.2.3 -platforms plan9/amd64", "plan9/amd64"},
		{"-version 1.2.3 -only deb", "archives, packages"},
		{"-version 1.2.3 -npm Ken", "npm package"},
		{"-version 1.2.3 more", "more"},
		{"-version 1.2.3 -commit no-such-commit -o " + t.TempDir(), "find commit no-such-commit"},
	}
	for _, tt := range tests {
		if err := run(t.Context(), strings.Fields(tt.args)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("release %s: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// TestOccupiedFolder checks that only the folder of a release is emptied.
func TestOccupiedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) {
		if err := (&release{options: options{out: dir}}).put(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	write("letter.txt")
	if err := empty(dir); err == nil || !strings.Contains(err.Error(), "holds no release") {
		t.Errorf("a folder with other files: %v", err)
	}
	write(provenanceName)
	if err := empty(dir); err != nil {
		t.Errorf("the folder of a release: %v", err)
	}
}

func TestLicenceOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"Apache License\n   Version 2.0, January 2004", "Apache-2.0"},
		{"Mozilla Public License Version 2.0\n====", "MPL-2.0"},
		{"Permission is hereby granted, free of charge, to any person obtaining\na copy of this software", "MIT"},
		{"Redistribution and use in source and binary forms … Neither the name of X … may be used to endorse or promote products", "BSD-3-Clause"},
		{"Redistribution and use in source and binary forms, with or without", "BSD-2-Clause"},
		{"Permission to use, copy, modify, and/or distribute this software", "ISC"},
		{"GNU GENERAL PUBLIC LICENSE", ""},
		{"All rights reserved.", ""},
	}
	for _, tt := range tests {
		if got := licenceOf(tt.text); got != tt.want {
			t.Errorf("licence of %.40q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
