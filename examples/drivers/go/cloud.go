package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// VM is what the provider knows of a virtual machine. All but ID and size are tags.
type VM struct {
	ProviderID  string `json:"providerID"`
	Cluster     string `json:"cluster"`
	Namespace   string `json:"namespace"`
	ClassName   string `json:"className"`
	MachineName string `json:"machineName"`
	// Empty on a VM that another tool made.
	MachineUID string `json:"machineUID,omitempty"`
	Size       string `json:"size,omitempty"`
}

// What the provider answers instead of doing what it was asked for.
var (
	ErrUnauthorized = errors.New("the token is not accepted")
	ErrNameTaken    = errors.New("a VM of that name exists")
	ErrNoSuchVM     = errors.New("there is no such VM")
)

// The one account of this cloud.
const accepted = "example-token"

// Cloud is the provider: a folder, and each VM a file in it. The client of a real one takes its place, with the same three requests.
// They take ctx, and end with it: a call that hangs holds its machine.
type Cloud struct {
	Folder  string
	Latency time.Duration
}

// Open makes the folder if there is none.
func (c *Cloud) Open() error { return os.MkdirAll(c.Folder, 0o700) }

// Create makes a VM with its tags in one step: it is never there without them. A name is given to one VM only; that is what makes
// a creation idempotent, also between several drivers. A real provider has client tokens or unique names for it.
func (c *Cloud) Create(ctx context.Context, token string, vm *VM) error {
	if err := c.request(ctx, token); err != nil {
		return err
	}
	text, err := json.Marshal(vm)
	if err != nil {
		return err
	}
	aside := filepath.Join(c.Folder, rand.Text()+".new")
	defer os.Remove(aside)
	if err := writeSynced(aside, text); err != nil {
		return err
	}
	err = os.Link(aside, c.fileOf(vm.ProviderID))
	if errors.Is(err, os.ErrExist) {
		return ErrNameTaken
	}
	return err
}

// Delete removes a VM with all that belongs to it.
func (c *Cloud) Delete(ctx context.Context, token, providerID string) error {
	if err := c.request(ctx, token); err != nil {
		return err
	}
	err := os.Remove(c.fileOf(providerID))
	if errors.Is(err, os.ErrNotExist) {
		return ErrNoSuchVM
	}
	return err
}

// List returns all VMs of the account. A real provider filters by tags.
func (c *Cloud) List(ctx context.Context, token string) ([]*VM, error) {
	if err := c.request(ctx, token); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(c.Folder)
	if err != nil {
		return nil, err
	}
	vms := []*VM{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.Folder, entry.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted meanwhile
		}
		vm := &VM{}
		if err := errors.Join(err, json.Unmarshal(text, vm)); err != nil {
			return nil, err
		}
		vms = append(vms, vm)
	}
	return vms, nil
}

// request is what each request to a provider has: it takes time, and credentials.
func (c *Cloud) request(ctx context.Context, token string) error {
	select {
	case <-time.After(c.Latency):
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if token != accepted {
		return ErrUnauthorized
	}
	return nil
}

// fileOf hashes the ID, so that nothing that came over the wire becomes part of a path.
func (c *Cloud) fileOf(providerID string) string {
	sum := sha256.Sum256([]byte(providerID))
	return filepath.Join(c.Folder, hex.EncodeToString(sum[:])+".json")
}
