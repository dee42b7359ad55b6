import { runLocalDriver } from './local-driver.ts';

await runLocalDriver(process.argv.slice(2));
