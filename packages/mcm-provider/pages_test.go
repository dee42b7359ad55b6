package mcmprovider

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func idsOf(vms []listed) []string {
	ids := []string{}
	for _, vm := range vms {
		ids = append(ids, vm.providerID)
	}
	return ids
}

func TestAListIsReadOnceForAllItsPages(t *testing.T) {
	reads := 0
	all := func() (map[string]string, error) {
		reads++
		return map[string]string{"c": "m3", "a": "m1", "b": "m2", "nameless": ""}, nil
	}
	several := &pages{}
	first, token, _ := several.next("class", "", 2, all)
	second, end, _ := several.next("class", token, 2, all)
	if got := slices.Concat(idsOf(first), idsOf(second)); !slices.Equal(got, []string{"a", "b", "c"}) || end != "" {
		t.Errorf("%v, then %q", got, end)
	}
	if reads != 1 {
		t.Errorf("read %d times", reads)
	}
}

func TestAPageAfterARestartContinuesWhereTheLastOneEnded(t *testing.T) {
	all := func() (map[string]string, error) { return map[string]string{"a": "m1", "b": "m2", "c": "m3"}, nil }
	_, token, _ := (&pages{}).next("class", "", 1, all)
	rest, end, err := (&pages{}).next("class", token, 0, all)
	if got := idsOf(rest); !slices.Equal(got, []string{"b", "c"}) || end != "" || err != nil {
		t.Errorf("%v, then %q, %v", got, end, err)
	}
}

func TestTheRestOfAListIsNotKeptForLong(t *testing.T) {
	reads := 0
	all := func() (map[string]string, error) {
		reads++
		return map[string]string{"a": "m1", "b": "m2"}, nil
	}
	several := &pages{}
	_, token, _ := several.next("class", "", 1, all)
	old := page{"class", token}
	several.rests[old] = rest{vms: several.rests[old].vms, at: time.Now().Add(-restTime - time.Second)}
	_, _, _ = several.next("other", "", 1, all)
	if _, isKept := several.rests[old]; isKept {
		t.Error("it is kept")
	}
	several.rests[old] = rest{at: time.Now().Add(-restTime - time.Second)}
	if late, _, _ := several.next("class", token, 1, all); !slices.Equal(idsOf(late), []string{"b"}) || reads != 3 {
		t.Errorf("%v after reading %d times", idsOf(late), reads)
	}
}

func TestPagesOfTwoListsDoNotMix(t *testing.T) {
	several := &pages{}
	list := func(ids ...string) func() (map[string]string, error) {
		names := map[string]string{}
		for _, id := range ids {
			names[id] = "m"
		}
		return func() (map[string]string, error) { return names, nil }
	}
	_, token, _ := several.next("one", "", 1, list("a", "b"))
	_, same, _ := several.next("other", "", 1, list("a", "z"))
	one, _, _ := several.next("one", token, 0, list())
	other, _, _ := several.next("other", same, 0, list())
	if !slices.Equal(idsOf(one), []string{"b"}) || !slices.Equal(idsOf(other), []string{"z"}) {
		t.Errorf("%v, %v", idsOf(one), idsOf(other))
	}
}

func TestAListThatFailsIsNoPage(t *testing.T) {
	if _, _, err := (&pages{}).next("class", "", 0, func() (map[string]string, error) { return nil, errors.New("away") }); err == nil {
		t.Error("an empty page")
	}
	if _, _, err := (&pages{}).next("class", "?", 0, nil); err == nil {
		t.Error("a token that is none")
	}
}
