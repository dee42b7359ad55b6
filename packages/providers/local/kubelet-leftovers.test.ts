import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { kubeletLeftoversIn } from './kubelet-leftovers.ts';
import { VMFolders } from './vm-folders.ts';

describe('what kubelets leave in /tmp', () => {
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
    {
      title: 'its socket',
      log: '"Connecting to runtime service" endpoint="unix:///tmp/kubelet_remote_98.sock"',
      want: ['/tmp/kubelet_remote_98.sock'],
    },
    {
      title: 'nothing else in /tmp',
      log: '/tmp/hollow-kubelet /tmp/other.1 /tmp/hollow-kubelet.x /tmp/kubelet_remote_.sock',
      want: [],
    },
  ])('is read from the log: $title', ({ log, want }) => {
    expect(kubeletLeftoversIn(log)).toEqual(want);
  });

  test('goes with the folder of their machine', () => {
    const state = mkdtempSync(join(tmpdir(), 'machinist-vms-'));
    const number = `${process.pid}${Math.floor(Math.random() * 1e9)}`;
    const root = `/tmp/hollow-kubelet.${number}`;
    const socket = `/tmp/kubelet_remote_${number}.sock`;
    try {
      mkdirSync(join(root, 'pods'), { recursive: true });
      const folders = new VMFolders(state);
      mkdirSync(folders.path('vm'), { recursive: true });
      writeFileSync(socket, '');
      writeFileSync(
        join(folders.path('vm'), 'kubelet.log'),
        `Using ${root} as root dir\nendpoint="unix://${socket}"\n`,
      );

      folders.remove('vm');

      expect([root, socket].filter((path) => existsSync(path))).toEqual([]);
    } finally {
      for (const path of [root, socket]) rmSync(path, { recursive: true, force: true });
      rmSync(state, { recursive: true, force: true });
    }
  });
});
