package mcmprovider

import (
	"sync"

	"machinist.example/mcm-provider/contract"
)

// owners remembers for which machines VMs were made, since the driver was started. Providers find VMs by the names of machines and by tags
// that classes share, so that a machine of the same name, of another namespace or of another cluster, gets to see a VM that is not its own;
// and what is listed and has no Machine there is deleted.
type owners struct {
	mu  sync.Mutex
	vms map[string]owner
}

// owner is a machine. The UID is empty where the VM was found and not made: names come back, with other UIDs.
type owner struct{ cluster, namespace, uid string }

// contradicts says whether a VM of this owner is that of another machine. A request without a UID is about a VM without a machine, and
// one without a namespace about all of a cluster.
func (o owner) contradicts(asked owner) bool {
	return o.cluster != asked.cluster || o.namespace != asked.namespace ||
		o.uid != "" && asked.uid != "" && o.uid != asked.uid
}

func (o *owners) note(providerID string, found owner) {
	if providerID == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.vms == nil {
		o.vms = map[string]owner{}
	}
	if found.uid == "" {
		found.uid = o.vms[providerID].uid
	}
	o.vms[providerID] = found
}

// of returns the owner of a VM, or `asked` if it is not known.
func (o *owners) of(providerID string, asked owner) owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, isKnown := o.vms[providerID]; isKnown {
		return known
	}
	return asked
}

// refuse returns NotFound for the VM of another machine: it is neither shown nor deleted.
func (o *owners) refuse(providerID string, asked owner) error {
	if o.of(providerID, asked).contradicts(asked) {
		failure := failed(contract.Code_CODE_NOT_FOUND, "%s was made for another machine", providerID)
		failure.isForeign = true
		return failure
	}
	return nil
}

func (o *owners) forget(providerID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.vms, providerID)
}
