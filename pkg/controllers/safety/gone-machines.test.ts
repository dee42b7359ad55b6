import { expect, test } from '@jest/globals';

import { node } from '../../../test/builders.ts';
import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { GoneMachines } from './gone-machines.ts';

test.each([
  { title: 'shows its VM', providerID: 'sim:///gone', says: '', isIts: true },
  { title: 'shows its VM and its name', providerID: 'sim:///gone', says: 'gone', isIts: true },
  { title: 'shows its VM and the name of another machine', providerID: 'sim:///gone', says: 'other', isIts: false },
  { title: 'shows its name and no VM', providerID: '', says: 'gone', isIts: true },
  { title: 'shows its name and another VM of the provider', providerID: 'sim:///new', says: 'gone', isIts: false },
  { title: 'shows nothing of it', providerID: 'sim:///other', says: '', isIts: false },
])('a Node that $title was that of the machine that is gone: $isIts', ({ providerID, says, isIts }) => {
  const gone = new GoneMachines();
  gone.add({ name: 'gone', providerID: 'sim:///gone' });
  const late = node((n) => {
    n.spec.providerID = providerID;
    if (says !== '') n.metadata.labels[MACHINE_NAME_LABEL] = says;
  });

  expect(gone.of(late)?.name).toBe(isIts ? 'gone' : undefined);
});
