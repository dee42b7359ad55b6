import { expect, test } from '@jest/globals';

import { reduceTo } from './sbom.ts';

const component = (name: string, version: string) => ({ name, version, 'bom-ref': `${name}@${version}` });
const BILL = {
  metadata: { component: { name: 'folder', version: '1' } },
  components: [component('kept', '1.0.0'), component('kept', '2.0.0'), component('tool', '1.0.0')],
  dependencies: [
    { ref: 'program', dependsOn: ['kept@1.0.0', 'tool@1.0.0'] },
    { ref: 'kept@1.0.0' },
    { ref: 'tool@1.0.0', dependsOn: ['kept@2.0.0'] },
  ],
};

test('a bill of materials names only what went in, in the version that went in', () => {
  const { metadata, components, dependencies } = reduceTo([{ name: 'kept', version: '1.0.0' }], BILL, 'program');

  expect(metadata).toEqual({ component: { name: 'program', version: '1' } });
  expect(components).toEqual([component('kept', '1.0.0')]);
  expect(dependencies).toEqual([
    { ref: 'program', dependsOn: ['kept@1.0.0'] },
    { ref: 'kept@1.0.0', dependsOn: [] },
  ]);
});

test('a part that no list names is no small matter', () => {
  expect(() => reduceTo([{ name: 'kept', version: '3.0.0' }], BILL, 'program')).toThrow(
    'not in the bill of materials: kept@3.0.0',
  );
});
