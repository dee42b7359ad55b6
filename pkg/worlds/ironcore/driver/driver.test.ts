import { expect, test } from '@jest/globals';
import { csiVolumeIDOf } from './driver.ts';

test.each([
  [{ csi: { driver: 'csi.ironcore.dev', volumeHandle: 'v' } }, 'v'],
  [{ csi: { driver: 'csi.ironcore.dev', volumeHandle: '' } }, undefined],
  [{ csi: { driver: 'other', volumeHandle: 'v' } }, undefined],
  [{ nfs: {} }, undefined],
  [null, undefined],
])('the volume of %j is %s', (spec, id) => {
  expect(csiVolumeIDOf(spec, 'csi.ironcore.dev')).toBe(id);
});
