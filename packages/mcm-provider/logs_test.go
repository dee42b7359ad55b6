package mcmprovider

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

type unwritable struct{}

func (unwritable) MarshalJSON() ([]byte, error) { panic("a defect") }

func TestLogLinesHaveNoSecretOfACallThatRuns(t *testing.T) {
	lines := &bytes.Buffer{}
	hiding := &secrets{}
	if err := startLogs(lines, "info", hiding); err != nil {
		t.Fatal(err)
	}
	key := []byte("s3cr3t/access+key")
	data := map[string][]byte{"key": key, "region": []byte("eu-central-1"), "userData": []byte("#!/bin/sh\njoin --token abcdef.0123456789abcdef")}
	show := hiding.hide(data)
	hiding.hide(data)()

	klog.Infof("creating with %s in %s", key, data["region"])
	klog.ErrorS(errors.New("refused "+string(key)), "failed", "secret", data)
	slog.Info("bytes", "text", fmt.Sprint(key), "encoded", base64.StdEncoding.EncodeToString(key))
	slog.Info("a word of the user data: abcdef.0123456789abcdef")
	klog.InfoS("a pointer to it", "request", &struct {
		Of *struct{ Data map[string][]byte }
	}{&struct{ Data map[string][]byte }{data}})
	klog.InfoS("a value that cannot be written", "request", unwritable{})
	klog.V(2).Info("a step")
	klog.V(3).Info("a request")
	written := lines.String()

	for _, secret := range []string{string(key), "abcdef.0123456789abcdef", strings.Trim(fmt.Sprint(key), "[]"), base64.StdEncoding.EncodeToString(key)} {
		if strings.Contains(written, secret) {
			t.Errorf("%s is in %s", secret, written)
		}
	}
	if !strings.Contains(written, "a pointer to it") || !strings.Contains(written, "cannot be written") {
		t.Errorf("lines are missing in %s", written)
	}
	if !strings.Contains(written, `"level":"INFO","msg":"a step"`) {
		t.Errorf("a line of the provider is missing, or has another level, in %s", written)
	}
	if !strings.Contains(written, "eu-central-1") || strings.Contains(written, "a request") {
		t.Errorf("%s", written)
	}
	show()
	if len(hiding.pieces) > 0 {
		t.Errorf("secrets of calls that have ended are kept")
	}
}

func TestWithDebugTheProviderWritesALineAboutEachRequest(t *testing.T) {
	lines := &bytes.Buffer{}
	if err := startLogs(lines, "debug", &secrets{}); err != nil {
		t.Fatal(err)
	}
	klog.V(3).Info("a request")
	klog.V(5).Info("a detail")
	klog.V(6).Info("a byte")
	for line, want := range map[string]bool{`"INFO","msg":"a request"`: true, `"DEBUG","msg":"a detail"`: true, "a byte": false} {
		if strings.Contains(lines.String(), line) != want {
			t.Errorf("%s in %s", line, lines)
		}
	}
}

func TestAFatalLineOfTheProviderIsAPanicOfItsCall(t *testing.T) {
	if err := startLogs(&bytes.Buffer{}, "error", &secrets{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if cause := fmt.Sprint(recover()); !strings.Contains(cause, "exit code 255") {
			t.Errorf("%v", cause)
		}
	}()
	klog.Fatal("cannot continue")
}
