import { closeSync, openSync, readSync } from 'node:fs';

/** e_machine of ELF, and cputype of Mach-O without its bit for 64. */
const ELF_MACHINES: Readonly<Record<number, string>> = {
  62: 'x64',
  183: 'arm64',
  243: 'riscv64',
  21: 'ppc64',
  22: 's390x',
};
const MACH_O_TYPES: Readonly<Record<number, string>> = { 7: 'x64', 12: 'arm64' };

/** What a program was built for, as "linux x64" in the words of Node; undefined for a script, and for formats that are not known. */
export function platformOf(file: string): string | undefined {
  const head = readHead(file);
  if (head.length < 20) return undefined;
  const magic = head.readUInt32BE(0);
  if (magic === 0x7f_45_4c_46) {
    const isLittle = head[5] === 1;
    const machine = isLittle ? head.readUInt16LE(18) : head.readUInt16BE(18);
    return `linux ${ELF_MACHINES[machine] ?? `machine type ${machine}`}`;
  }
  if (magic === 0xcf_fa_ed_fe) {
    const type = head.readUInt32LE(4) % 0x1_00_00_00;
    return `darwin ${MACH_O_TYPES[type] ?? `CPU type ${type}`}`;
  }
  return head.toString('latin1', 0, 2) === 'MZ' ? 'win32' : undefined;
}

function readHead(file: string): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    const head = Buffer.alloc(20);
    return head.subarray(0, readSync(descriptor, head));
  } finally {
    closeSync(descriptor);
  }
}
