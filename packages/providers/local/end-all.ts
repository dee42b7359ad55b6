import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import type { Clock } from '../../../pkg/base/clock/clock.ts';
import { StateDirectory } from '../../../pkg/drivers/state-directory.ts';
import { endKubelet, findKubelet } from './kubelet.ts';
import { VMFolders } from './vm-folders.ts';

/**
 * Ends all machines of a state directory and removes their files; returns their names. Only kubelets that are provably of this
 * directory are ended: by pid and start time as written down, or by a command line that names a folder in it. Throws
 * StateDirectoryError while a driver runs there.
 */
export async function endAll(stateDirectory: string, clock: Clock = new SystemClock()): Promise<readonly string[]> {
  using state = StateDirectory.open(stateDirectory);
  const folders = new VMFolders(state.path);
  const vms = folders.load();
  await Promise.all(
    vms.map(async (vm) => {
      const process = vm.process ?? findKubelet(folders.path(vm.id));
      if (process !== undefined) await endKubelet(process, clock);
      folders.remove(vm.id);
    }),
  );
  return vms.map((vm) => vm.machineName);
}
