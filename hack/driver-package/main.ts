import { buildDriverPackage } from './build.ts';

/** `main.ts <folder>`: the package machinist-driver, ready for `npm publish <folder>`. */
const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: node hack/driver-package/main.ts <folder>');
await buildDriverPackage(folder);
console.log(`wrote machinist-driver to ${folder}`);
