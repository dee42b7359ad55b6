import { expect, test } from '@jest/globals';

import { machine, node } from '../../../test/builders.ts';
import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { DeletedMachines, remainsOf } from './deleted-machines.ts';

test.each([
  { title: 'shows its VM', providerID: 'sim:///gone', says: '', isIts: true },
  { title: 'shows its VM and its name', providerID: 'sim:///gone', says: 'gone', isIts: true },
  { title: 'shows its VM and the name of another machine', providerID: 'sim:///gone', says: 'other', isIts: false },
  { title: 'shows its name and no VM', providerID: '', says: 'gone', isIts: true },
  { title: 'shows its name and another VM of the provider', providerID: 'sim:///new', says: 'gone', isIts: false },
  { title: 'shows its name and an id of its own', providerID: 'kubemark://n-1', says: 'gone', isIts: true },
  { title: 'shows nothing of it', providerID: 'sim:///other', says: '', isIts: false },
  { title: 'shows its name and its VM in another form', providerID: 'sim://v2/gone', says: 'gone', isIts: true },
  { title: 'has its name and shows its VM in another form', name: 'n-gone', providerID: 'sim://v2/gone', isIts: true },
  { title: 'has its name only', name: 'n-gone', providerID: '', isIts: false },
  { title: 'has its name and shows another VM', name: 'n-gone', providerID: 'sim:///new', isIts: false },
  {
    title: 'has its name and an id of another provider',
    name: 'n-gone',
    providerID: 'kubemark://gone-2',
    isIts: false,
  },
  { title: 'shows its VM in another form, and has another name', providerID: 'sim://v2/gone', isIts: false },
  {
    title: 'has its name, shows its VM in another form, and the name of another machine',
    name: 'n-gone',
    providerID: 'sim://v2/gone',
    says: 'other',
    isIts: false,
  },
])('a Node that $title was that of the machine that is gone: $isIts', ({ name, providerID, says = '', isIts }) => {
  const gone = new DeletedMachines();
  gone.add({ name: 'gone', nodeName: 'n-gone', providerID: 'sim:///gone' });
  const late = node((n) => {
    if (name !== undefined) n.metadata.name = name;
    n.spec.providerID = providerID;
    if (says !== '') n.metadata.labels[MACHINE_NAME_LABEL] = says;
  });

  expect(gone.of(late)?.name).toBe(isIts ? 'gone' : undefined);
});

test('a VM that was not deleted after all takes nothing along of its twin, which was', () => {
  const gone = new DeletedMachines();
  const one = { name: 'gone', nodeName: 'n-gone' };
  gone.add({ ...one, providerID: 'sim:///stays' });
  gone.add({ ...one, providerID: 'sim:///gone' });

  gone.forgetVM('sim:///stays');

  expect([gone.has('sim:///stays'), gone.has('sim:///gone')]).toEqual([false, true]);
  const late = node((n) => {
    n.metadata.labels[MACHINE_NAME_LABEL] = 'gone';
    n.spec.providerID = '';
  });
  expect(gone.of(late)?.providerID).toBe('sim:///gone');
  gone.forgetVM('sim:///gone');
  expect(gone.of(late)).toBeUndefined();
});

test('a name alone is not believed of a Node that was there before the machine', () => {
  const gone = new DeletedMachines();
  gone.add({ name: 'gone', nodeName: 'n-gone', providerID: 'sim:///gone', createdAt: '2026-01-02T00:00:00Z' });
  const of = (creationTimestamp: string, providerID: string): string | undefined =>
    gone.of(
      node((n) => {
        Object.assign(n.metadata, { creationTimestamp, labels: { [MACHINE_NAME_LABEL]: 'gone' } });
        n.spec.providerID = providerID;
      }),
    )?.name;

  expect(of('2026-01-01T00:00:00Z', 'kubemark://n-1')).toBeUndefined();
  expect(of('2026-01-02T00:00:00Z', 'kubemark://n-1')).toBe('gone');
  expect(of('2026-01-01T00:00:00Z', 'sim:///gone')).toBe('gone');
});

test('a machine whose VM no driver has shown leaves nothing, whatever its provider id', () => {
  const gone = new DeletedMachines();
  const copied = machine((m) => {
    m.metadata.labels = {};
    m.status.conditions = [];
    m.status.currentStatus = { phase: 'Terminating' };
  });

  gone.add(remainsOf(copied));

  expect(gone.of(node((n) => void (n.spec.providerID = copied.spec.providerID ?? '')))).toBeUndefined();
});

test.each([
  { what: 'knew the name of its Node', labels: { node: 'ip-10-0-0-1' }, nodeName: 'ip-10-0-0-1' },
  { what: 'did not know the name of its Node', labels: {}, nodeName: 'm-1' },
])('a machine that is gone and $what is remembered with $nodeName', ({ labels, nodeName }) => {
  const gone = machine((m) => Object.assign(m.metadata, { labels }));

  const { creationTimestamp: createdAt } = gone.metadata;
  expect(remainsOf(gone)).toEqual({ name: 'm-1', nodeName, providerID: 'sim:///m-1', createdAt });
});
