import { expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { PatientChanges } from './patient-changes.ts';

test('what refuses one owner is tried by the other, which comes back for it', async () => {
  const changes = new PatientChanges({ clock: new FakeClock() });
  const orphan = machine();
  const refused = async (): Promise<void> => await Promise.reject(new ApiError(403, 'Forbidden', 'protected'));

  expect((await changes.each('default/a', [orphan], refused)).objects).toEqual([orphan]);
  expect(changes.among('default/b', [orphan]).objects).toEqual([]);
  expect((await changes.each('default/b', [orphan], refused)).objects).toEqual([orphan]);
  expect(changes.dueInMs('default/b')).toBeGreaterThan(0);

  expect((await changes.each('default/c', [orphan], async () => {})).objects).toEqual([]);
  expect(changes.among('default/a', [orphan]).objects).toEqual([orphan]);
});
