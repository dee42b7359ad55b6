// Code generated from examples/drivers/go/fencing.go by npm run generate. DO NOT EDIT.

package mcmprovider

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"machinist.example/mcm-provider/contract"
)

// Fencing refuses managers that were replaced and do not know it yet (rule 5 of the contract). The highest token of each cluster and
// namespace is kept in a file, which several processes may share, and which outlives them.
type Fencing struct{ file string }

// OpenFencing keeps tokens in a folder, which it makes if there is none.
func OpenFencing(folder string) (*Fencing, error) {
	return &Fencing{file: filepath.Join(folder, "fencing.json")}, os.MkdirAll(folder, 0o700)
}

// Admit comes first in whatever changes something at the provider.
func (f *Fencing) Admit(call *contract.Call, namespace string) error {
	token := call.GetFencingToken()
	if token == 0 {
		return nil // a manager without leader election: neither refused nor remembered
	}
	lock, err := os.OpenFile(f.file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	highest, err := f.load()
	if err != nil {
		return err
	}
	key := call.GetCluster() + "/" + namespace
	if token < highest[key] {
		return &Failure{
			Code:         contract.Code_CODE_FAILED_PRECONDITION,
			Message:      fmt.Sprintf("fencing token %d is older than %d: another manager has taken over", token, highest[key]),
			HighestToken: highest[key],
		}
	}
	if token == highest[key] {
		return nil
	}
	highest[key] = token
	return f.save(highest)
}

// load takes a file that cannot be read for an error, never for an empty one.
func (f *Fencing) load() (map[string]uint64, error) {
	highest := map[string]uint64{}
	text, err := os.ReadFile(f.file)
	if errors.Is(err, os.ErrNotExist) {
		return highest, nil
	}
	if err != nil {
		return nil, err
	}
	return highest, json.Unmarshal(text, &highest)
}

// save replaces the file as a whole: a crash leaves the old one or the new one.
func (f *Fencing) save(highest map[string]uint64) error {
	text, err := json.Marshal(highest)
	if err != nil {
		return err
	}
	if err := writeSynced(f.file+".new", text); err != nil {
		return err
	}
	return os.Rename(f.file+".new", f.file)
}

// writeSynced resolves when the text would survive a crash of the host.
func writeSynced(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Sync(), file.Close())
}
