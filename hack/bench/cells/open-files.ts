import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What of a process is open. */
export interface OpenFiles {
  readonly descriptors: number;
  /** Established TCP connections by the remote port. */
  readonly connections: ReadonlyMap<number, number>;
}

const ESTABLISHED = '01';

/** Reads /proc; throws when the process has ended. */
export function openFilesOf(pid: number): OpenFiles {
  const folder = `/proc/${pid}/fd`;
  const targets = readdirSync(folder).flatMap((fd) => {
    try {
      return [readlinkSync(`${folder}/${fd}`)];
    } catch {
      return []; // closed meanwhile
    }
  });
  const sockets = new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []));
  const connections = new Map<number, number>();
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1)) {
    const [, , remote = '', state, , , , , , inode = ''] = line.trim().split(/\s+/);
    if (state !== ESTABLISHED || !sockets.has(inode)) continue;
    const port = Number.parseInt(remote.slice(remote.indexOf(':') + 1), 16);
    connections.set(port, (connections.get(port) ?? 0) + 1);
  }
  return { descriptors: targets.length, connections };
}
