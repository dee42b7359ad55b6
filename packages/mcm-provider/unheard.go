package mcmprovider

import (
	"sync"
	"time"
)

// For how long a cloud may not show a VM that it has made. Longer than the two minutes that a manager waits after a creation without an
// answer.
const settlingTime = 5 * time.Minute

// unheard remembers VMs that the provider has made after their callers had given up. The next call of the machine may come within
// milliseconds, before the cloud shows the VM: it would make a second one, or delete nothing.
type unheard struct {
	mu  sync.Mutex
	vms map[string]unheardVM
}

type unheardVM struct {
	made vm
	at   time.Time
}

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
	last, isThere := u.vms[uid]
	return last.made, isThere && time.Since(last.at) <= settlingTime
}

func (u *unheard) forget(uid string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.vms, uid)
}
