package mcmprovider

import (
	"sync"
	"time"
)

// For how long a cloud may not show a VM that it has made. Longer than the two minutes that a manager waits after a creation without an
// answer.
const settlingTime = 5 * time.Minute

// For how long a creation that was cut short may still turn out to have made a VM: what a manager waits after a creation without an answer.
const doubtTime = 2 * time.Minute

// unheard remembers VMs that the provider has made after their callers had given up, and creations of which it is not known whether they
// have made one. The next call of the machine may come within milliseconds, before the cloud shows the VM: it would make a second one, or
// delete nothing.
type unheard struct {
	mu  sync.Mutex
	vms map[string]unheardVM
}

type unheardVM struct {
	// Without a provider ID: there may be one.
	made vm
	at   time.Time
}

// remember takes a VM without a provider ID for one that may exist.
func (u *unheard) remember(uid string, made vm) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.vms == nil {
		u.vms = map[string]unheardVM{}
	}
	for other, vm := range u.vms {
		if time.Since(vm.at) > settlingTime {
			delete(u.vms, other)
		}
	}
	u.vms[uid] = unheardVM{made: made, at: time.Now()}
}

// find returns the VM of a machine that the cloud may not show yet.
func (u *unheard) find(uid string) (made vm, isThere bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.vms[uid]
	return last.made, last.made.providerID != "" && time.Since(last.at) <= settlingTime
}

// isInDoubt says whether a VM of the machine may exist that neither the provider nor the cloud has named.
func (u *unheard) isInDoubt(uid string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, isThere := u.vms[uid]
	return isThere && last.made.providerID == "" && time.Since(last.at) <= doubtTime
}

func (u *unheard) forget(uid string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.vms, uid)
}
