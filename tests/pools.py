"""A lab with a pool that has a volume, for the tests of pools."""

POLICIES = ["through", "none", "openzfs", "legacy"]
LAYOUTS = {
    "stripe": '["a", "b"]',
    "mirror": '[["a", "b"]]',
    "both": '[["a", "b"], ["c", "d"]]',
    "dynamic": '[["a", "b"], ["c"]]\nlayout = "dynamic"',
}
VOLUME = "tank/v"


def lab(directory, policy="openzfs", layout="stripe", store="ram", block="8K", size="48M"):
    """A lab with one volume. `store` may name the disk: `file:{disk}.img`."""
    disks = [name for name in "abcd" if f'"{name}"' in LAYOUTS[layout]]
    text = ""
    for name in disks:
        if "file:" in store:
            with open(directory / f"{name}.img", "a+b") as image:
                image.truncate(64 << 20)
        text += f'[disk.{name}]\nstore = "{store.format(disk=name)}"\nsize = "64M"\n'
    text += f'[pool.tank]\ndisks = {LAYOUTS[layout]}\nzfs_dirty_data_max = "4M"\nzfs_txg_timeout = "1s"\n'
    text += 'txg_overhead = "off"\n'
    text += f'[volume."{VOLUME}"]\nsize = "{size}"\nblock_size = "{block}"\nwrite = "{policy}"\n'
    path = directory / "lab.toml"
    path.write_text(text)
    return path, disks
