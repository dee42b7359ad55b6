package mcmprovider

import (
	"cmp"
	"encoding/base64"
	"slices"
	"sync"
	"time"

	"machinist.example/mcm-provider/contract"
)

// How long the rest of a list is kept for the next page.
const restTime = 5 * time.Minute

// listed is a VM in a list of the provider.
type listed struct{ providerID, name string }

// pages cuts lists into pages. A provider lists everything in one call, so the rest is kept for the next page. If it is gone, because the
// driver was restarted, everything is listed again from the last ID on: what exists throughout is on one of the pages.
type pages struct {
	mu    sync.Mutex
	rests map[page]rest
}

// page is named by the list that it belongs to and its token.
type page struct{ list, token string }

type rest struct {
	vms []listed
	at  time.Time
}

// next returns a page of a list and the token of the next one. A size of 0 is everything.
func (p *pages) next(list, token string, size int, all func() (map[string]string, error)) ([]listed, string, error) {
	after, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, "", failed(contract.Code_CODE_INVALID_ARGUMENT, "page_token: not a token of this driver")
	}
	vms, isKept := p.take(list, token)
	if !isKept {
		names, err := all()
		if err != nil {
			return nil, "", err
		}
		vms = ordered(names, string(after))
	}
	if size <= 0 || len(vms) <= size {
		return vms, "", nil
	}
	next := base64.RawURLEncoding.EncodeToString([]byte(vms[size-1].providerID))
	p.keep(list, next, vms[size:])
	return vms[:size], next, nil
}

func ordered(names map[string]string, after string) []listed {
	vms := []listed{}
	for id, name := range names {
		// A VM without a name is nobody's: what is listed and has no machine is deleted.
		if id > after && name != "" {
			vms = append(vms, listed{id, name})
		}
	}
	slices.SortFunc(vms, func(a, b listed) int { return cmp.Compare(a.providerID, b.providerID) })
	return vms
}

func (p *pages) take(list, token string) ([]listed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept, isKept := p.rests[page{list, token}]
	delete(p.rests, page{list, token})
	return kept.vms, isKept && token != "" && time.Since(kept.at) <= restTime
}

func (p *pages) keep(list, token string, vms []listed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rests == nil {
		p.rests = map[page]rest{}
	}
	for old, kept := range p.rests {
		if time.Since(kept.at) > restTime {
			delete(p.rests, old)
		}
	}
	p.rests[page{list, token}] = rest{vms: vms, at: time.Now()}
}
