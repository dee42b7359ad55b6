import { describe, expect, test } from '@jest/globals';

import type { Node, VolumeAttachment } from '../apis/wire.ts';
import { isAttached, isAttachedElsewhere, unsharedVolumes } from './volumes.ts';

const metadata = { name: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '' };

function node(...attached: string[]): Node {
  return { metadata, status: { volumesAttached: attached.map((name) => ({ name, devicePath: '' })) } };
}

function attachment(nodeName: string, persistentVolumeName: string | undefined, attached: boolean): VolumeAttachment {
  const source = persistentVolumeName === undefined ? { inlineVolumeSpec: {} } : { persistentVolumeName };
  return { metadata, spec: { attacher: 'csi', nodeName, source }, status: { attached } };
}

describe('isAttached', () => {
  test.each([
    {
      what: 'the Node names its id',
      volume: { name: 'pv', id: 'vol-1' },
      node: node('kubernetes.io/csi/ebs^vol-1'),
      attachments: [],
      want: true,
    },
    {
      what: 'the Node names another',
      volume: { name: 'pv', id: 'vol-1' },
      node: node('kubernetes.io/csi/ebs^vol-2'),
      attachments: [],
      want: false,
    },
    {
      what: 'an attachment asks for it',
      volume: { name: 'pv', id: undefined },
      node: node(),
      attachments: [attachment('n', 'pv', false)],
      want: true,
    },
    {
      what: 'an attachment asks for another',
      volume: { name: 'pv', id: undefined },
      node: node(),
      attachments: [attachment('n', 'other', true)],
      want: false,
    },
    {
      what: 'an inline volume is attached',
      volume: { name: 'pv', id: undefined },
      node: node(),
      attachments: [attachment('n', undefined, true)],
      want: false,
    },
    {
      what: 'its id is empty',
      volume: { name: 'pv', id: '' },
      node: node('kubernetes.io/csi/ebs^vol-2'),
      attachments: [],
      want: false,
    },
    { what: 'the Node is gone', volume: { name: 'pv', id: 'vol-1' }, node: undefined, attachments: [], want: false },
  ])('$what: $want', (row) => {
    expect(isAttached(row.volume, row.node, row.attachments)).toBe(row.want);
  });
});

describe('isAttachedElsewhere', () => {
  test.each([
    { attachments: [], want: false },
    { attachments: [attachment('n', 'pv', true)], want: false },
    { attachments: [attachment('m', 'pv', false)], want: false },
    { attachments: [attachment('n', 'pv', true), attachment('m', 'pv', true)], want: true },
  ])('row %#: $want', ({ attachments, want }) => {
    expect(isAttachedElsewhere('n', attachments)).toBe(want);
  });
});

test('volumes that several pods share are not followed', () => {
  const volumes = new Map([
    ['a', ['own-a', 'shared']],
    ['b', ['shared', 'own-b']],
    ['c', []],
  ]);

  expect(unsharedVolumes(volumes)).toEqual(
    new Map([
      ['a', ['own-a']],
      ['b', ['own-b']],
      ['c', []],
    ]),
  );
});
