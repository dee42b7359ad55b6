import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { kubeletRootsIn } from './kubelet-root.ts';
import { VMFolders } from './vm-folders.ts';

describe('root directories of kubelets', () => {
  test.each([
    { title: 'a log without one', log: 'starting\n', want: [] },
    {
      title: 'one, mentioned twice',
      log: 'Using /tmp/hollow-kubelet.42 as root dir\n"/tmp/hollow-kubelet.42/pods"',
      want: ['/tmp/hollow-kubelet.42'],
    },
    {
      title: 'those of two starts',
      log: '/tmp/hollow-kubelet.1 /tmp/hollow-kubelet.12',
      want: ['/tmp/hollow-kubelet.1', '/tmp/hollow-kubelet.12'],
    },
    { title: 'nothing else in /tmp', log: '/tmp/hollow-kubelet /tmp/other.1 /tmp/hollow-kubelet.x', want: [] },
  ])('are read from the log: $title', ({ log, want }) => {
    expect(kubeletRootsIn(log)).toEqual(want);
  });

  test('go with the folder of their machine', () => {
    const state = mkdtempSync(join(tmpdir(), 'machinist-vms-'));
    const root = `/tmp/hollow-kubelet.${process.pid}${Math.floor(Math.random() * 1e9)}`;
    try {
      mkdirSync(join(root, 'pods'), { recursive: true });
      const folders = new VMFolders(state);
      mkdirSync(folders.path('vm'), { recursive: true });
      writeFileSync(join(folders.path('vm'), 'kubelet.log'), `Using ${root} as root dir for hollow-kubelet\n`);

      folders.remove('vm');

      expect(existsSync(root)).toBe(false);
    } finally {
      rmSync(root, { recursive: true, force: true });
      rmSync(state, { recursive: true, force: true });
    }
  });
});
